/**
 * Tests many simultaneous submissions of one challenge, each over its own connection: they give one key. On both databases.
 * `PROOFGATE_TEST_SUBMISSIONS` sets their number (`make soak`).
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Enrollment } from '../../../src/caller/enroll/control-answers.ts';
import type { Submission } from '../../../src/caller/enroll/control-client.ts';
import type { Verdict } from '../../../src/caller/service/service-verdict.ts';
import {
  type ControlDatabase,
  postgresDatabase,
  sqliteDatabase,
} from '../../support/control/control-database.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { submissionOf, Workload, WorkloadConnection } from '../../support/control/workload.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';

const SUBMISSIONS = Number(process.env.PROOFGATE_TEST_SUBMISSIONS ?? 200);
const MAX_ATTEMPTS = 5;

interface Case {
  readonly stage: ControlStage;
  readonly database: ControlDatabase;
  close(): Promise<void>;
}

async function openSqlite(): Promise<Case> {
  const stage = await ControlStage.start();
  return { stage, database: sqliteDatabase(stage.dataDirectory), close: () => stage.stop() };
}

async function openPostgres(): Promise<Case> {
  const server = await TestPostgresServer.start();
  const databaseUrl = await server.createDatabase();
  const stage = await ControlStage.start({ databaseUrl });
  return {
    stage,
    database: postgresDatabase(server, databaseUrl),
    async close() {
      await stage.stop();
      await server.stop();
    },
  };
}

describe.each([
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
])('on %s', (_, open) => {
  let opened: Case;
  let workload: Workload;
  /** Key IDs that were answered, by the key that enrolled. */
  const issued = new Map<string, Set<string>>();
  const connections: WorkloadConnection[] = [];
  beforeAll(async () => {
    opened = await open();
    const { controlUrl } = opened.stage;
    connections.push(...Array.from({ length: SUBMISSIONS }, () => new WorkloadConnection(controlUrl)));
  });
  afterAll(async () => {
    await Promise.all(connections.map((each) => each.close()));
    await opened?.close();
  });

  /** @param makeOf the index-th submission of one challenge */
  async function submitAll(
    makeOf: (challenge: Omit<Submission, 'workloadToken'>, index: number) => Submission,
  ): Promise<readonly Verdict<Enrollment>[]> {
    const { stage } = opened;
    const { reference } = await stage.policy('billing');
    workload = new Workload(String(reference), stage.controlUrl);
    const [first] = connections;
    const challenge = first && (await workload.challenge(first));
    if (challenge === undefined) throw new Error('no challenge');
    const made = connections.map((_each, index) => makeOf(challenge, index));
    return Promise.all(
      made.map((submission, index) => insist(submission, connections[index] as WorkloadConnection)),
    );
  }

  /** A busy machine: Control answers `unavailable` or `request_timeout`, or a connection takes too long. As a client does, the same is submitted again. */
  async function insist(
    submission: Submission,
    connection: WorkloadConnection,
  ): Promise<Verdict<Enrollment>> {
    for (let attempt = 1; ; attempt++) {
      const verdict = await workload.submit(submission, connection);
      const isOverloaded =
        verdict.kind === 'later' && ['unavailable', 'request_timeout'].includes(verdict.code);
      const isUnconnected = verdict.kind === 'unreachable' && verdict.cause === 'UND_ERR_CONNECT_TIMEOUT';
      if (!(isOverloaded || isUnconnected) || attempt === MAX_ATTEMPTS) return verdict;
    }
  }

  /** How many verdicts of which kind. */
  function tally(verdicts: readonly Verdict<Enrollment>[]): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const verdict of verdicts) {
      const said =
        verdict.kind === 'done' ? verdict.value.state : 'code' in verdict ? verdict.code : verdict.cause;
      counts[`${verdict.kind} ${said}`] = (counts[`${verdict.kind} ${said}`] ?? 0) + 1;
    }
    return counts;
  }

  const keyIdsOf = (verdicts: readonly Verdict<Enrollment>[]) =>
    verdicts.flatMap((verdict) =>
      verdict.kind === 'done' && verdict.value.state === 'issued' ? [verdict.value.key.keyId] : [],
    );

  it('the same submission many times: each is answered with the one key', async () => {
    const token = opened.stage.workloadToken('billing');
    const verdicts = await submitAll((challenge) => submissionOf(challenge, token));
    const keyIds = keyIdsOf(verdicts);
    expect(tally(verdicts)).toEqual({ 'done issued': SUBMISSIONS });
    issued.set(workload.thumbprint, new Set(keyIds));
  });

  it('ten tokens for one challenge: each is answered with the one key', async () => {
    const tokens = Array.from({ length: 10 }, () => opened.stage.workloadToken('billing'));
    const verdicts = await submitAll((challenge, index) =>
      submissionOf(challenge, tokens[index % tokens.length] ?? ''),
    );
    const keyIds = keyIdsOf(verdicts);
    expect(tally(verdicts)).toEqual({ 'done issued': SUBMISSIONS });
    issued.set(workload.thumbprint, new Set(keyIds));
  });

  it('the database has that key alone, once audited', async () => {
    // SQLite's files can only be read when its process is gone.
    await opened.stage.stopControl();
    const { enrollments, keys, audit } = await opened.database.query({
      enrollments: 'select thumbprint, key_id from enrollment',
      keys: 'select thumbprint, key_id from derived_key',
      audit: "select resource_id from audit_event where kind = 'proofgate.control.derived_key.issue'",
    });
    expect(issued.size).toBe(2);
    const expected = [...issued].map(([thumbprint, [keyId]]) => ({ thumbprint, key_id: keyId }));
    expect([...issued.values()].map(({ size }) => size)).toEqual([1, 1]);
    expect(keys).toHaveLength(expected.length);
    expect(keys).toEqual(expect.arrayContaining(expected));
    expect(enrollments).toHaveLength(expected.length);
    expect(enrollments).toEqual(expect.arrayContaining(expected));
    expect(audit.map(({ resource_id: id }) => id).sort()).toEqual(keys.map(({ key_id: id }) => id).sort());
    await opened.stage.startControl();
  });
});
