/** Tests the agent's files: atomic replacement, reuse of existing keys, and what concurrent readers see. */
import {
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { KeyPairs } from '../../../src/caller/agent/key-pairs.ts';
import { readEnrolledKeyFile, settledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { FakeControl, POLICY } from '../../support/fakes/control-enrollment.ts';

let folder = '';
let control: FakeControl;
const inFolder = (name: string) => join(folder, name);
const KEY = 'key.pem';
const STATE = 'key.pem.enrollment.json';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-pairs-'));
  await mkdir(inFolder('keys'));
  control = await FakeControl.start();
  await writeFile(inFolder('token'), await control.token());
});
afterEach(async () => {
  await control.close();
  await rm(folder, { recursive: true, force: true });
});

const keyFile = () => inFolder(`keys/${KEY}`);

function pairsOf(policy = POLICY): KeyPairs {
  return new KeyPairs(keyFile(), { controlUrl: control.url, policy });
}

async function enrollInto(file: string): Promise<void> {
  const target = ['--control-url', control.url, '--policy', POLICY, '--proof-file', inFolder('token')];
  const run = await runInProcess(['enroll', ...target, '--private-key-out', file]);
  expect(run).toMatchObject({ exitCode: 0 });
}

async function openPairs(): Promise<KeyPairs> {
  const pairs = pairsOf();
  await pairs.open();
  return pairs;
}

/** Publishes another pair. */
async function publishAnother(pairs: KeyPairs): Promise<void> {
  await enrollInto(await pairs.nextKeyFile());
  await pairs.publishNext();
}

async function keyIdInPlace(): Promise<string | undefined> {
  return (await readEnrolledKeyFile(keyFile())).state.enrolled?.key.keyId;
}

const names = async () => (await readdir(inFolder('keys'))).sort();

describe('a pair that is put in place', () => {
  it('is found where it was asked for, for its owner alone', async () => {
    const pairs = await openPairs();
    await publishAnother(pairs);
    expect(await names()).toEqual(['.key.pem.1', '.key.pem.current', KEY, STATE]);
    expect(await readlink(keyFile())).toBe('.key.pem.current/key.pem');
    for (const name of [KEY, STATE]) expect((await stat(inFolder(`keys/${name}`))).mode & 0o777).toBe(0o600);
    expect((await stat(inFolder('keys/.key.pem.1'))).mode & 0o777).toBe(0o700);
    expect(await keyIdInPlace()).toBe(control.keyIds[0]);
  });

  it('leaves the one before for a concurrent reader, and no older one', async () => {
    const pairs = await openPairs();
    await publishAnother(pairs);
    const first = await settledKeyFile(keyFile());
    await publishAnother(pairs);
    expect(await keyIdInPlace()).toBe(control.keyIds[1]);
    expect((await readEnrolledKeyFile(first)).state.enrolled?.key.keyId).toBe(control.keyIds[0]);
    await publishAnother(pairs);
    expect(await names()).toEqual(['.key.pem.2', '.key.pem.3', '.key.pem.current', KEY, STATE]);
  });

  it('brings nothing along that was left half-written', async () => {
    const pairs = await openPairs();
    await enrollInto(await pairs.nextKeyFile());
    await writeFile(inFolder('keys/.key.pem.1/.key.pem.enrollment.json.0011223344556677'), 'half');
    await pairs.publishNext();
    expect((await readdir(inFolder('keys/.key.pem.1'))).sort()).toEqual([KEY, STATE]);
  });

  it('signs and shows, and no reader at any moment finds halves of two', async () => {
    const pairs = await openPairs();
    await publishAnother(pairs);
    let reads = 0;
    let isDone = false;
    const reading = (async () => {
      while (!isDone) {
        await readEnrolledKeyFile(keyFile());
        reads += 1;
      }
    })();
    for (let i = 0; i < 20; i++) await publishAnother(pairs);
    isDone = true;
    await reading;
    expect(reads).toBeGreaterThan(20);
    const url = 'https://api.shop.example/v1/orders/7';
    const signed = await runInProcess([
      'sign',
      'GET',
      url,
      '--key',
      keyFile(),
      '--out',
      '-',
      '--format',
      'json',
    ]);
    expect(signed).toMatchObject({ exitCode: 0 });
    const shown = await runInProcess(['status', '--key', keyFile(), '--offline', '--output', 'json']);
    expect(JSON.parse(shown.stdout)).toMatchObject({ derived_key: { key_id: control.keyIds.at(-1) } });
  });
});

describe('a start', () => {
  it('takes over what enroll left, without a moment at which it is not there', async () => {
    await enrollInto(keyFile());
    const before = await readFile(keyFile());
    const pairs = await openPairs();
    expect((await lstat(keyFile())).isSymbolicLink()).toBe(true);
    expect(await readFile(keyFile())).toEqual(before);
    expect((await pairs.current())?.record.key.keyId).toBe(control.keyIds[0]);
    await openPairs();
    expect(await names()).toEqual(['.key.pem.1', '.key.pem.2', '.key.pem.current', KEY, STATE]);
  });

  it('goes on with an enrollment that enroll began', async () => {
    control.interfere = (_method, path) =>
      path === '/v1/enrollments' ? { status: 503, code: 'unavailable' } : undefined;
    const target = ['--control-url', control.url, '--policy', POLICY, '--proof-file', inFolder('token')];
    const flags = ['--submit-retries', '0', '--private-key-out', keyFile()];
    expect(await runInProcess(['enroll', ...target, ...flags])).toMatchObject({ exitCode: 4 });
    const pairs = await openPairs();
    expect((await pairs.nextState())?.attempt?.kind).toBe('submitting');
    expect(await readFile(await pairs.nextKeyFile())).toEqual(await readFile(keyFile()));
  });

  it('leaves alone what is not its own', async () => {
    await enrollInto(keyFile());
    const other = pairsOf('epr_other');
    await expect(other.open()).rejects.toMatchObject({ code: 'file_exists' });
    await rm(inFolder(`keys/${STATE}`));
    await expect(openPairs()).rejects.toMatchObject({ code: 'file_exists' });
    await rm(keyFile());
    await symlink('elsewhere', keyFile());
    await expect(openPairs()).rejects.toMatchObject({ code: 'file_exists' });
    await rm(keyFile());
    await mkdir(keyFile());
    await expect(openPairs()).rejects.toMatchObject({ code: 'file_exists' });
  });

  it('does not count a pair of another policy, and replaces it', async () => {
    await publishAnother(await openPairs());
    const other = pairsOf('epr_other');
    await other.open();
    expect(await other.current()).toBeUndefined();
    expect(await keyIdInPlace()).toBe(control.keyIds[0]);
  });

  it('says when the folder is not there', async () => {
    await rm(inFolder('keys'), { recursive: true });
    await expect(openPairs()).rejects.toMatchObject({ code: 'file_not_written' });
  });

  /** Files as a kill leaves them at each step of a publication. */
  it.each([
    ['before anything led to it', [KEY, STATE]],
    ['before the key led to it', [KEY]],
    ['with a link half placed', [KEY, '+.key.pem.link']],
  ])('finishes what was being put in place %s', async (_what, changes) => {
    await publishAnother(await openPairs());
    for (const change of changes) {
      if (change.startsWith('+')) await symlink('nowhere', inFolder(`keys/${change.slice(1)}`));
      else await rm(inFolder(`keys/${change}`));
    }
    await openPairs();
    expect(await names()).toEqual(['.key.pem.1', '.key.pem.2', '.key.pem.current', KEY, STATE]);
    expect(await keyIdInPlace()).toBe(control.keyIds[0]);
  });

  it('finishes a take-over that was interrupted', async () => {
    await enrollInto(keyFile());
    await cp(inFolder('keys'), inFolder('copy'), { recursive: true });
    await mkdir(inFolder('keys/.key.pem.1'), { mode: 0o700 });
    await cp(inFolder(`copy/${STATE}`), inFolder(`keys/.key.pem.1/${STATE}`));
    const pairs = await openPairs();
    expect((await pairs.current())?.record.key.keyId).toBe(control.keyIds[0]);
    // An interruption between the creation of the link and of the files that point to it.
    for (const name of [KEY, STATE]) {
      await rm(inFolder(`keys/${name}`));
      await cp(inFolder(`copy/${name}`), inFolder(`keys/${name}`));
    }
    await openPairs();
    expect((await lstat(keyFile())).isSymbolicLink()).toBe(true);
    expect(await readlink(inFolder('keys/.key.pem.current'))).toBe('.key.pem.1');
  });
});

it('a pair of which one half is gone is none', async () => {
  const pairs = await openPairs();
  await publishAnother(pairs);
  await rm(inFolder(`keys/.key.pem.1/${STATE}`));
  expect(await pairs.current()).toBeUndefined();
});
