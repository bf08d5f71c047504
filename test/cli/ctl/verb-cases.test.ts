/**
 * Compares the verbs of `proofgate ctl` with the transcripts. Each verb is played by ID, by name, with an ambiguous name, with
 * something missing, forbidden, with a stale version and with `--output json`; or `WITHOUT` says why it has no such case.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { ProofgateCommand } from '../../../src/cli/define/define-command.ts';
import { buildProgram } from '../../../src/cli/program.ts';
import { Output } from '../../../src/process/program/output.ts';
import { parseTranscript, type Step } from '../../support/cli/transcript.ts';

const TRANSCRIPTS = ['e2e/control/ctl-verbs.txt', 'e2e/control/ctl-apply.txt', 'cli/ctl/sessions.txt'];

const CASES = ['id', 'name', 'ambiguous', 'missing', 'forbidden', 'stale', 'json'] as const;
type Case = (typeof CASES)[number];

/** With which codes the runs of a case fail. */
const CODES: { readonly [C in Case]?: readonly string[] } = {
  ambiguous: ['name_ambiguous', 'trust_domain_required'],
  missing: ['not_found', 'broker_unknown'],
  forbidden: ['permission_denied'],
  stale: ['precondition_failed'],
};

const CREATES = ['create environment', 'create fleet', 'create role-grant', 'create access-token'];
const BLOCKS = ['block', 'unblock', 'block-caller', 'unblock-caller'];
const OWN = ['login', 'logout', 'whoami'];
const OF_SITE = ['raise-floor', 'rotate-signing-key', 'signing-keys'];

/** Cases that do not exist. */
const WITHOUT: readonly {
  readonly reason: string;
  readonly cases: readonly Case[];
  readonly verbs: readonly string[];
}[] = [
  {
    reason: 'it is about the caller alone',
    cases: ['id', 'name', 'ambiguous', 'missing', 'forbidden', 'stale'],
    verbs: OWN,
  },
  {
    reason: 'a person signs in with a browser while it runs: ctl-login.test.ts',
    cases: ['json'],
    verbs: ['login'],
  },
  {
    reason: 'the file names the site, which is created when it is missing',
    cases: ['id', 'name', 'ambiguous', 'missing'],
    verbs: ['apply'],
  },
  {
    reason: 'its file is that of apply, and test/e2e/control/preview.extended.test.ts runs it',
    cases: CASES,
    verbs: ['preview'],
  },
  {
    reason: 'it names nothing that exists',
    cases: ['id', 'name', 'ambiguous', 'missing'],
    verbs: ['create environment'],
  },
  { reason: 'names of environments are unique', cases: ['ambiguous'], verbs: ['create fleet'] },
  { reason: 'what one may not read looks missing', cases: ['forbidden'], verbs: ['get', 'signing-keys'] },
  { reason: 'it changes nothing', cases: ['stale'], verbs: ['get', 'signing-keys'] },
  { reason: 'what it creates has no version yet', cases: ['stale'], verbs: CREATES },
  {
    reason: 'the resource has an ID alone',
    cases: ['name', 'ambiguous'],
    verbs: ['approve', 'deny', 'revoke', 'retire-signing-key'],
  },
  { reason: 'people choose the ID of a site: it is its name', cases: ['id', 'ambiguous'], verbs: OF_SITE },
  { reason: 'issuer and trust domain name a broker', cases: ['id'], verbs: ['broker-keys refresh'] },
  { reason: 'it takes identities, which need not exist', cases: ['id', 'name', 'ambiguous'], verbs: BLOCKS },
  {
    reason: 'it takes an identity, which need not have a session',
    cases: ['name', 'ambiguous', 'missing'],
    verbs: ['end-sessions'],
  },
  {
    reason: 'there is one bootstrap token',
    cases: ['id', 'name', 'ambiguous', 'missing'],
    verbs: ['disable-bootstrap-token'],
  },
  {
    reason: 'the state of the resource decides, or doing it twice does no harm: no version is sent',
    cases: ['stale'],
    verbs: [
      ...['approve', 'deny', 'revoke', 'detach', 'raise-floor', ...BLOCKS],
      ...['validate', 'activate', 'suspend', 'resume', 'retire', 'deactivate', 'reactivate'],
      ...['rotate-signing-key', 'retire-signing-key', 'rotate-target-token', 'rotate-access-token'],
      ...['end-sessions', 'disable-bootstrap-token'],
    ],
  },
];

type Words = readonly string[];

interface Run {
  readonly verb: string;
  readonly words: Words;
  /** Undefined: the run succeeds. */
  readonly code: string | undefined;
}

async function verbsOfCtl(): Promise<Words> {
  const output = new Output(process.stdout, process.stderr, {});
  const program = await buildProgram({ env: {}, output, version: '1.0.0' });
  const ctl = program.commands.find((each) => each.name() === 'ctl') as ProofgateCommand;
  return ctl.commands.flatMap((each) =>
    each.commands.length === 0 ? [each.name()] : each.commands.map((one) => `${each.name()} ${one.name()}`),
  );
}

function runsOf(steps: readonly Step[], verbs: Words): readonly Run[] {
  return steps.flatMap(({ verb: kind, words: [, ctl, ...words] }, at) => {
    const verb = verbs.find((each) => `${words.join(' ')} `.startsWith(`${each} `));
    if (kind !== '$' || ctl !== 'ctl' || verb === undefined) return [];
    const length = steps.slice(at + 1).findIndex((step) => step.verb === '$');
    const expected = steps.slice(at + 1, length === -1 ? undefined : at + 1 + length);
    const code = expected.find((step) => step.verb === 'error')?.words[0];
    return [{ verb, words: words.slice(verb.split(' ').length), code }];
  });
}

/** What a run names: its first word, unless it is listed here. */
const REFERENCES: { readonly [verb: string]: (words: Words) => string | undefined } = {
  get: ([, name]) => name,
  delete: ([, name]) => name,
  rename: ([, name]) => name,
  'create environment': () => undefined,
  'create fleet': (words) => flagIn(words, '--environment'),
  'create role-grant': (words) => flagIn(words, '--scope'),
  'create access-token': (words) => flagIn(words, '--scope'),
  'retire-signing-key': ([, key]) => key,
  'signing-keys': (words) => flagIn(words, '--site'),
  'broker-keys refresh': (words) => flagIn(words, '--issuer'),
};

function flagIn(words: Words, flag: string): string | undefined {
  const at = words.indexOf(flag);
  return at === -1 ? undefined : words[at + 1];
}

function casesOf({ verb, words, code }: Run): readonly Case[] {
  if (code !== undefined) return CASES.filter((each) => CODES[each]?.includes(code));
  const named = (REFERENCES[verb] ?? (([first]) => first))(words);
  const cases: Case[] = flagIn(words, '--output') === 'json' ? ['json'] : [];
  if (named === undefined || named.startsWith('-')) return cases;
  // Transcripts have IDs that Control makes as `{…}`, and kinds of scopes before them.
  return [...cases, /^(?:\w+:)?\{[A-Z_]+\}$/.test(named) ? 'id' : 'name'];
}

it('plays each case of each verb that there is, and no case that there is not', async () => {
  const verbs = await verbsOfCtl();
  const played = new Set<string>();
  for (const file of TRANSCRIPTS) {
    const { steps } = parseTranscript(readFileSync(join(import.meta.dirname, '../..', file), 'utf8'));
    for (const run of runsOf(steps, verbs)) {
      for (const each of casesOf(run)) played.add(`${run.verb}: ${each}`);
    }
  }
  const absent = WITHOUT.flatMap(({ cases, verbs: of }) =>
    of.flatMap((verb) => cases.map((each) => `${verb}: ${each}`)),
  );
  const all = verbs.flatMap((verb) => CASES.map((each) => `${verb}: ${each}`));
  expect([...played, ...absent].toSorted()).toEqual(all.toSorted());
});
