import { describe, expect, it } from '@jest/globals';
import {
  classifyFault,
  describeConnectionError,
  describeRefusal,
  describeSilence,
} from '../../../src/verifier/redis/faults.ts';

const LABEL = 'redis.example:6379';
const SECRET = 'hunter2';

/** As ioredis rejects with what a server answered. */
function replyError(message: unknown): object {
  return { name: 'ReplyError', message };
}

describe('what a command was rejected with', () => {
  it.each([
    'ASK',
    'BUSY',
    'CLUSTERDOWN',
    'CROSSSLOT',
    'LOADING',
    'MASTERDOWN',
    'MISCONF',
    'MOVED',
    'NOAUTH',
    'NOPERM',
    'NOREPLICAS',
    'NOSCRIPT',
    'OOM',
    'READONLY',
    'TRYAGAIN',
    'WRONGPASS',
    'WRONGTYPE',
  ])('%s is a refusal by that code', (code) => {
    expect(classifyFault(replyError(`${code} and more`))).toEqual({ kind: 'refused', code });
    expect(classifyFault(replyError(code))).toEqual({ kind: 'refused', code });
  });

  it.each([
    "ERR The user executing the script can't run this command or subcommand script: 5d, on @user_script:1.",
    "The user executing the script can't access at least one of the keys mentioned in the command arguments",
  ])('what a script was not allowed is NOPERM: %s', (message) => {
    expect(classifyFault(replyError(message))).toEqual({ kind: 'refused', code: 'NOPERM' });
  });

  it.each([`${SECRET} is wrong`, `ERR unknown ${SECRET}`, 'MOVEDX 1', ' MOVED 1', 'moved 1', ''])(
    'every other answer is a refusal without its text: %j',
    (message) => {
      expect(classifyFault(replyError(message))).toEqual({ kind: 'refused', code: 'ERR' });
    },
  );

  it.each<[unknown]>([
    [new Error('Command timed out')],
    [Object.assign(new Error('NOSCRIPT x'), { name: 'Error' })],
    [replyError(undefined)],
    [replyError(7)],
    [{ name: 'ReplyError' }],
    [{ message: 'NOSCRIPT' }],
    ['NOSCRIPT'],
    [null],
    [undefined],
  ])('anything else leaves open what became of the command: %p', (error) => {
    expect(classifyFault(error)).toEqual({ kind: 'no_answer' });
  });
});

describe('a connection that failed', () => {
  it.each<[unknown, string]>([
    [Object.assign(new Error(SECRET), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    [
      Object.assign(new Error(SECRET), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [replyError(`WRONGPASS ${SECRET}`), 'WRONGPASS'],
    [replyError(`NOAUTH ${SECRET}`), 'NOAUTH'],
    [replyError(`${SECRET}`), 'ERR'],
  ])('is reported with address and code: %#', (error, code) => {
    const line = describeConnectionError(error, LABEL);
    expect(line).toContain(LABEL);
    expect(line).toContain(`(${code})`);
    expect(line).not.toContain(SECRET);
  });

  it.each<[unknown]>([
    [new Error(SECRET)],
    [Object.assign(new Error(SECRET), { code: 7 })],
    [{ code: { toString: () => 'ECONNREFUSED' } }],
    [Object.assign(new Error(SECRET), { code: `${SECRET}` })],
    [Object.assign(new Error(SECRET), { code: 'E CONN' })],
    [Object.assign(new Error(SECRET), { code: 'xECONNREFUSED' })],
    [Object.assign(new Error(SECRET), { code: 'ECONNREFUSED ' })],
    [Object.assign(new Error(SECRET), { code: 'E' })],
    [Object.assign(new Error(SECRET), { code: `E${'X'.repeat(64)}` })],
    [null],
    [SECRET],
  ])('is reported as silence without a code of the system: %#', (error) => {
    expect(describeConnectionError(error, LABEL)).toBe(describeSilence(LABEL));
    expect(describeSilence(LABEL)).toContain(LABEL);
  });

  it('takes the shortest and the longest code', () => {
    for (const code of ['E1', `E${'X'.repeat(63)}`]) {
      expect(describeConnectionError({ code }, LABEL)).toContain(`(${code})`);
    }
  });
});

it('refusals differ by what an operator must do', () => {
  const lines = ['NOAUTH', 'WRONGPASS', 'NOPERM', 'OOM'].map((code) => describeRefusal(code, LABEL));
  expect(new Set(lines.map((line) => line.replace(/\([A-Z]+\)/, ''))).size).toBe(3);
});
