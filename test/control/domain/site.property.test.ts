/**
 * Random walks over a site: every invariant holds after each step, in any order of events. The invariants follow the
 * specification and read the model, not the domain's answers. A failure shows the seed of its run.
 */
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { keyStateAt, POLICY_EVENTS } from '../../../src/control/domain/enrollment-rules.ts';
import { SOURCE_EVENTS } from '../../../src/control/domain/source-states.ts';
import { type Revision, SiteModel } from './site-model.ts';

const CAPACITY = 3;
const RUNS = 6000;

type Step = (site: SiteModel) => void;

/** Selects an existing item by any number; does nothing when there is none. */
const on =
  <T>(list: (site: SiteModel) => readonly T[], at: number, act: (site: SiteModel, item: T) => void): Step =>
  (site) => {
    const items = list(site);
    const item = items[at % Math.max(items.length, 1)];
    if (item !== undefined) act(site, item);
  };

const which = fc.nat({ max: 20 });
const publicKeys = fc.constantFrom('key-a', 'key-b', 'key-c', 'key-d', 'key-e');
const subjects = fc.constantFrom('subject-a', 'subject-b');

const sourceStep = fc.tuple(which, fc.constantFrom(...SOURCE_EVENTS)).map(([at, event]) =>
  on(
    (site) => site.revisions,
    at,
    (site, revision) => site.sourceEvent(revision, event),
  ),
);

/** Draft to active in one step, because single random events seldom get that far. */
const activation = which.map((at) =>
  on(
    (site) => site.revisions,
    at,
    (site, revision) => {
      for (const event of ['validation_passed', 'activate', 'check_passed', 'acknowledged'] as const) {
        site.sourceEvent(revision, event);
      }
    },
  ),
);

const policy = fc
  .record({
    at: which,
    maxKeyLifetimeSeconds: fc.integer({ min: 60, max: 86_400 }),
    isManual: fc.boolean(),
    subject: subjects,
    maxKeysPerToken: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ at, ...rest }) =>
    on(
      (site) => site.revisions,
      at,
      (site, revision) => site.addPolicy({ revision, ...rest }),
    ),
  );

const submission = fc
  .record({
    at: which,
    publicKey: publicKeys,
    token: fc.nat({ max: 3 }),
    lifetime: fc.integer({ min: -10, max: 7200 }),
  })
  .map(({ at, publicKey, token, lifetime }) =>
    on(
      (site) => site.policies,
      at,
      (site, to) =>
        site.submit(to, publicKey, { name: `token-${token}`, expiresAtSeconds: site.nowSeconds + lifetime }),
    ),
  );

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Step>((site) => site.addSource()) },
  {
    weight: 2,
    arbitrary: which.map((at) =>
      on(
        (site) => site.revisions,
        at,
        (site, of) => site.addRevision(of),
      ),
    ),
  },
  { weight: 6, arbitrary: sourceStep },
  { weight: 5, arbitrary: activation },
  { weight: 4, arbitrary: policy },
  {
    weight: 2,
    arbitrary: fc.tuple(which, fc.constantFrom(...POLICY_EVENTS)).map(([at, event]) =>
      on(
        (site) => site.policies,
        at,
        (site, row) => site.policyEvent(row, event),
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(which, which).map(([at, to]) =>
      on(
        (site) => site.policies,
        at,
        (site, row) => {
          on(
            () => site.revisions,
            to,
            (_site, revision) => site.rebind(row, revision),
          )(site);
        },
      ),
    ),
  },
  { weight: 8, arbitrary: submission },
  {
    weight: 4,
    arbitrary: which.map((at) =>
      on(
        (site) => site.enrollments,
        at,
        (site, row) => site.approve(row),
      ),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(which, fc.constantFrom('deny', 'expire')).map(([at, event]) =>
      on(
        (site) => site.enrollments,
        at,
        (site, row) => site.decide(row, event),
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(which, fc.boolean()).map(([at, blocks]) =>
      on(
        (site) => site.keys,
        at,
        (site, key) => site.revoke(key, blocks),
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.integer({ min: 1, max: 4000 }).map(
      (seconds): Step =>
        (site) => {
          site.nowSeconds += seconds;
        },
    ),
  },
);

const FINAL: ReadonlySet<string> = new Set([
  'source retired',
  'source removed',
  'policy deleted',
  'enrollment issued',
  'enrollment denied',
  'enrollment expired',
  'key revoked',
  'key expired',
]);

/** The states of all items, in an append-only order. */
function statesOf(site: SiteModel): readonly (readonly string[])[] {
  return [
    site.revisions.map(({ state }) => `source ${state}`),
    site.policies.map(({ state }) => `policy ${state}`),
    site.enrollments.map(({ state }) => `enrollment ${state}`),
    site.keys.map((key) => {
      return `key ${keyStateAt(key.status, key.enrollment.keyExpiresAtSeconds, site.nowSeconds)}`;
    }),
  ];
}

/** Like `expect`, which is too slow for a million calls. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`does not hold: ${what}`);
}

const SLOT_HOLDERS = new Set(['activating', 'publishing', 'active', 'suspended']);

function checkSources(site: SiteModel): void {
  const holders = site.revisions.filter(({ state }) => SLOT_HOLDERS.has(state));
  must(new Set(holders.map(({ source }) => source)).size <= CAPACITY, 'capacity');
  const active = site.revisions.filter(({ state }) => state === 'active').map(({ source }) => source);
  must(new Set(active).size === active.length, 'at most one active revision of a source');
}

function checkKeys(site: SiteModel): void {
  const issued = site.enrollments.filter(({ state }) => state === 'issued');
  must(issued.length === site.keys.length, 'a key for each issued enrollment, and no other');
  for (const { enrollment, status } of site.keys) {
    const { acceptedAtSeconds, keyExpiresAtSeconds, token, policy: of, publicKey } = enrollment;
    must(keyExpiresAtSeconds <= token.expiresAtSeconds, 'no key outlives its token');
    must(keyExpiresAtSeconds <= acceptedAtSeconds + of.maxKeyLifetimeSeconds, 'no key outlives its policy');
    // A source alone grants nothing: each key has a policy and an accepted submission.
    must(site.policies.includes(of) && issued.includes(enrollment), 'policy and accepted submission');
    const lives = status === 'active' && site.nowSeconds < keyExpiresAtSeconds;
    must(!(lives && site.revokedKeys.has(publicKey)), 'no living key of a revoked public key');
  }
}

function checkPending(site: SiteModel): void {
  for (const { state, policy: of, revision } of site.enrollments) {
    must(state !== 'pending_approval' || of.revision === revision, 'what waits was verified by its policy');
  }
}

/** Checks which requests were accepted, and why the others were rejected. */
function checkVerdicts(site: SiteModel, from: number): void {
  for (const { problem, policyState, revisionState, ...facts } of site.verdicts.slice(from)) {
    if (problem === undefined) {
      must(policyState === 'active' && revisionState === 'active', 'accepted by an active policy and source');
      must(facts.otherKeysOfToken < facts.maxKeysPerToken, 'keys that a token may enroll');
      must(!facts.keyWasRevoked && !facts.isBlocked && !facts.anotherIsActive, 'accepted though refused');
    } else if (policyState !== 'active' && policyState !== 'waiting') {
      must(problem === 'policy_not_active', `policy ${policyState}: ${problem}`);
    } else if (revisionState !== 'active') {
      const expected = facts.anotherIsActive ? 'policy_revision_outdated' : 'source_not_active';
      must(problem === expected, `revision ${revisionState}: ${problem}`);
    }
  }
}

function checkFinal(before: readonly (readonly string[])[], after: readonly (readonly string[])[]): void {
  before.forEach((states, kind) => {
    states.forEach((state, at) => {
      if (FINAL.has(state)) must(after[kind]?.[at] === state, `${state} is final`);
    });
  });
}

const reached = new Map<string, number>();
const count = (what: string) => reached.set(what, (reached.get(what) ?? 0) + 1);

it('holds after each step of any walk', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80, size: 'max' }), (steps) => {
      const site = new SiteModel(CAPACITY);
      let before = statesOf(site);
      for (const act of steps) {
        const verdicts = site.verdicts.length;
        act(site);
        const after = statesOf(site);
        checkSources(site);
        checkKeys(site);
        checkPending(site);
        checkVerdicts(site, verdicts);
        checkFinal(before, after);
        before = after;
        for (const state of new Set(after.flat())) count(state);
      }
      for (const { problem } of site.verdicts) count(problem ?? 'accepted');
      if (site.slotsUsed() === CAPACITY) count('capacity used up');
    }),
    { numRuns: RUNS },
  );
});

it('walks far enough to mean something', () => {
  const wanted = [
    ...FINAL,
    'source active',
    'source suspended',
    'source publishing',
    'key active',
    'accepted',
  ];
  const problems = [
    'policy_not_active',
    'policy_revision_outdated',
    'source_not_active',
    'subject_blocked',
    'key_revoked',
    'token_key_limit',
  ];
  for (const what of [...wanted, ...problems, 'capacity used up']) {
    expect([what, (reached.get(what) ?? 0) > 10]).toEqual([what, true]);
  }
});

it('at most one revision of a source is under way, and the newer one wins', () => {
  const site = new SiteModel(1);
  const begin = (revision: Revision, ...events: readonly Parameters<SiteModel['sourceEvent']>[1][]) => {
    for (const event of events) site.sourceEvent(revision, event);
  };
  site.addSource();
  const first = site.revisions[0] as Revision;
  begin(first, 'validation_passed', 'activate', 'check_passed', 'acknowledged');
  site.addRevision(first);
  const second = site.revisions[1] as Revision;
  begin(second, 'validation_passed', 'activate', 'check_passed');
  begin(first, 'suspend', 'resume');
  expect([first.state, second.state]).toEqual(['suspended', 'publishing']);
  begin(second, 'acknowledged');
  expect([first.state, second.state]).toEqual(['retired', 'active']);
  expect(site.slotsUsed()).toBe(1);
});
