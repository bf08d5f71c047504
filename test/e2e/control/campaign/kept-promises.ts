/**
 * Compares Control's database with what Control has acknowledged: nothing lost, nothing doubled, the chain of published
 * documents complete. Each finding is one line; a correct run has none.
 */

import type { ControlDatabase, DatabaseRow } from '../../../support/control/control-database.ts';
import type { Acknowledged } from './acknowledged.ts';

const QUERIES = {
  enrollments: 'select id, challenge_id, thumbprint, state, key_id from enrollment',
  keys: 'select key_id, enrollment_id, thumbprint, status, listed_revision, revoked_revision from derived_key',
  consumed: 'select id, enrollment_id from challenge where enrollment_id is not null',
  clients: 'select client_id from client',
  grants: 'select client_id, resource from client_grant',
  audit: 'select kind, resource_id, count(*) as times from audit_event group by kind, resource_id',
  changes: "select reference from site_change where kind = 'key'",
  steps: 'select revision, head, previous_head, kind from bundle_step order by revision',
  site: 'select revision, head from site',
} as const;

export type DatabaseContents = Readonly<Record<keyof typeof QUERIES, readonly DatabaseRow[]>>;

export function readContents(database: ControlDatabase): Promise<DatabaseContents> {
  return database.query(QUERIES);
}

/** Everything that contradicts what was acknowledged, or itself. */
export function brokenPromises(contents: DatabaseContents, acknowledged: Acknowledged): readonly string[] {
  return [
    ...acknowledged.contradictions,
    ...lostEnrollments(contents, acknowledged),
    ...lostDecisions(contents, acknowledged),
    ...doubled(contents),
    ...unaudited(contents),
    ...forgottenByPublisher(contents),
    ...brokenChain(contents),
  ];
}

function lostEnrollments({ enrollments }: DatabaseContents, acknowledged: Acknowledged): readonly string[] {
  const byId = new Map(enrollments.map((row) => [row.id, row]));
  return [...acknowledged.enrollments.values()].flatMap(
    ({ enrollmentId, challengeId, thumbprint, keyId }) => {
      const row = byId.get(enrollmentId);
      if (row === undefined) return [`lost: enrollment ${enrollmentId}`];
      const isSame = row.challenge_id === challengeId && row.thumbprint === thumbprint;
      if (!isSame) return [`changed: enrollment ${enrollmentId}`];
      return keyId === undefined || row.key_id === keyId ? [] : [`lost: key ${keyId} of ${enrollmentId}`];
    },
  );
}

function lostDecisions(contents: DatabaseContents, acknowledged: Acknowledged): readonly string[] {
  const { keys, clients, grants } = contents;
  const revoked = new Set(keys.flatMap((row) => (row.status === 'revoked' ? [row.key_id] : [])));
  const clientIds = new Set(clients.map((row) => row.client_id));
  const held = new Set(grants.map((row) => `${row.client_id} ${row.resource}`));
  return [
    ...missing('revocation', acknowledged.revokedKeyIds, revoked),
    ...missing('client', acknowledged.clientIds, clientIds),
    ...missing('grant', acknowledged.grants, held),
  ];
}

function missing(what: string, wanted: Iterable<string>, there: ReadonlySet<unknown>): readonly string[] {
  return [...wanted].filter((each) => !there.has(each)).map((each) => `lost: ${what} ${each}`);
}

/** Every workload of the campaigns brings a new key, so that a public key comes once. */
function doubled({ enrollments, keys, consumed }: DatabaseContents): readonly string[] {
  const enrollmentOf = new Map(enrollments.map((row) => [row.id, row]));
  const keyOf = new Map(keys.map((row) => [row.key_id, row]));
  return [
    ...repeated('challenge', enrollments, 'challenge_id'),
    ...repeated('public key of an enrollment', enrollments, 'thumbprint'),
    ...repeated('public key of a key', keys, 'thumbprint'),
    ...repeated('enrollment of a key', keys, 'enrollment_id'),
    ...keys.flatMap(({ key_id, enrollment_id }) =>
      enrollmentOf.get(enrollment_id)?.key_id === key_id ? [] : [`stray: key ${key_id}`],
    ),
    ...enrollments.flatMap(({ id, state, key_id }) =>
      (state === 'issued') === keyOf.has(key_id) ? [] : [`half: enrollment ${id} is ${state}`],
    ),
    ...consumed.flatMap(({ id, enrollment_id }) =>
      enrollmentOf.get(enrollment_id)?.challenge_id === id ? [] : [`stray: consumed challenge ${id}`],
    ),
  ];
}

function repeated(what: string, rows: readonly DatabaseRow[], column: string): readonly string[] {
  const seen = new Set<unknown>();
  return rows.flatMap((row) => {
    const value = row[column];
    if (seen.has(value)) return [`doubled: ${what} ${value}`];
    seen.add(value);
    return [];
  });
}

/** Every change has exactly one audit row. */
function unaudited({ enrollments, keys, audit }: DatabaseContents): readonly string[] {
  const times = new Map(audit.map((row) => [`${row.kind} ${row.resource_id}`, Number(row.times)]));
  const expectOnce = (verb: string, id: unknown) => {
    const count = times.get(`proofgate.control.${verb} ${id}`) ?? 0;
    return count === 1 ? [] : [`audit: ${verb} of ${id} ${count} times`];
  };
  return [
    ...enrollments.flatMap(({ id }) => expectOnce('enrollment.submit', id)),
    ...keys.flatMap(({ key_id }) => expectOnce('derived_key.issue', key_id)),
    ...keys.flatMap(({ key_id, status }) =>
      status === 'revoked' ? expectOnce('derived_key.revoke', key_id) : [],
    ),
  ];
}

/** A key that is not in a bundle yet, or not out of it, is on the publisher's list. */
function forgottenByPublisher({ keys, changes }: DatabaseContents): readonly string[] {
  const listed = new Set(changes.map(({ reference }) => reference));
  return keys.flatMap(({ key_id, status, listed_revision, revoked_revision }) => {
    const published = status === 'revoked' ? revoked_revision : listed_revision;
    return published === null && !listed.has(key_id) ? [`forgotten: key ${key_id} is ${status}`] : [];
  });
}

/** Each document continues the previous one, and the site is at the last. */
function brokenChain({ steps, site }: DatabaseContents): readonly string[] {
  const breaks = steps
    .slice(1)
    .flatMap(({ revision, previous_head }, index) =>
      previous_head === steps[index]?.head ? [] : [`chain: ${revision} does not continue`],
    );
  const last = steps.at(-1);
  const isAtEnd = site.every(({ head }) => (head ?? undefined) === last?.head);
  return isAtEnd ? breaks : [...breaks, 'chain: the site is not at its end'];
}
