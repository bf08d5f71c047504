/** What completion offers: from the program's own commands and flags, and IDs from a running Control. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { candidatesFor, type FetchIds } from '../../../src/cli/completion/candidates.ts';
import { buildProgram } from '../../../src/cli/program.ts';
import { Output } from '../../../src/process/program/output.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { runProofgate } from '../../support/harness/proofgate-command.ts';

/** @param line its last word is completed */
async function candidates(line: string, fetchIds: FetchIds = async () => []) {
  const output = new Output(process.stdout, process.stderr, {});
  const program = await buildProgram({ env: {}, output, version: '1.0.0' });
  return candidatesFor(line.split(' '), program, fetchIds);
}

describe('of the program', () => {
  it.each([
    ['sig', ['sign', 'signer']],
    ['bundle re', ['reset-mark']],
    ['ctl get bl', ['blocked-callers', 'blocked-subjects']],
    ['sign --fo', ['--format']],
    ['sign --format ', ['headers', 'json']],
    ['sign --format=j', ['--format=json']],
    ['sign --key ', [':files']],
    ['bundle lint ', [':files']],
    ['sign --ttl ', []],
    ['sign --ttl 5s P', ['PATCH', 'POST', 'PUT']],
    ['nonsense ', []],
  ])('%j', async (line, expected) => {
    expect(await candidates(line)).toEqual(expected);
  });

  it('asks for IDs of the kind that the argument or flag names', async () => {
    const asked: unknown[] = [];
    const fetchIds: FetchIds = async (kind, { flags }) => {
      asked.push([kind, flags.get('site')]);
      return ['one', 'two'];
    };
    expect(await candidates('ctl revoke t', fetchIds)).toEqual(['two']);
    expect(await candidates('ctl get keys --site eu o', fetchIds)).toEqual(['one']);
    expect(await candidates('ctl get keys --site o', fetchIds)).toEqual(['one']);
    expect(await candidates('ctl rebind ep_1 --source o', fetchIds)).toEqual(['one']);
    expect(asked).toEqual([
      ['keys', undefined],
      ['keys', ['eu']],
      ['sites', undefined],
      ['sources', undefined],
    ]);
  });

  it.each([
    'ctl get audit ',
    'ctl get signing-keys ',
    'ctl rename audit ',
    'ctl delete keys ',
    'ctl create environment ',
    'ctl retire-signing-key shop ',
  ])('asks for no IDs where the command takes none: %j', async (line) => {
    expect(await candidates(line, async () => ['one'])).toEqual([]);
  });

  it('leaves out IDs that a shell would run', async () => {
    const fetchIds: FetchIds = async () => [
      '$(reboot)',
      'a;b',
      'a b',
      '`x`',
      "a'b",
      'https://a.example/b',
      'client:c',
    ];
    expect(await candidates('ctl revoke ', fetchIds)).toEqual(['client:c', 'https://a.example/b']);
  });
});

describe('of Control', () => {
  let stage: ControlStage;
  beforeAll(async () => {
    stage = await ControlStage.start();
  });
  afterAll(async () => stage?.stop());

  const asked = async (words: readonly string[], tokenFile = stage.tokenFile) => {
    const connection = ['--control-url', stage.controlUrl, '--token-file', tokenFile];
    return runProofgate(['completion-candidates', ...words.slice(0, -1), ...connection, ...words.slice(-1)]);
  };

  it('has the IDs of sites and policies, of any site', async () => {
    expect(await asked(['ctl', 'get', 'sites', ''])).toMatchObject({ exitCode: 0, stdout: SITE_ID });
    const policies = await stage.list('policies');
    const { stdout } = await asked(['ctl', 'get', 'policies', 'ep']);
    expect(stdout.split('\n')).toEqual(policies.map(({ policy_id: id }) => id).sort());
  });

  it('is silent without access', async () => {
    const nothing = { exitCode: 0, stdout: '', stderr: '' };
    expect(await asked(['ctl', 'get', 'sites', ''], '/nonexistent')).toEqual(nothing);
    expect(await runProofgate(['completion-candidates', 'ctl', 'get', 'sites', ''])).toEqual(nothing);
  });
});
