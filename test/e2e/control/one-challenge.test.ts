/** A thousand submissions of one challenge at once, over a thousand connections: one key. On both databases. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Enrollment } from '../../../src/client/enroll/control-answers.ts';
import type { Submission, Verdict } from '../../../src/client/enroll/control-client.ts';
import { TestPostgresServer } from '../../fakes/postgres-server.ts';
import {
  type ControlDatabase,
  type DatabaseRow,
  postgresDatabase,
  sqliteDatabase,
} from './campaign/control-database.ts';
import { submissionOf, Workload, WorkloadConnection } from './campaign/workload.ts';
import { ControlStage } from './control-stage.ts';

const SUBMISSIONS = 1000;
const TIMEOUT_MS = 90_000;

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
  const connections: WorkloadConnection[] = [];
  beforeAll(async () => {
    opened = await open();
    const { controlUrl } = opened.stage;
    connections.push(...Array.from({ length: SUBMISSIONS }, () => new WorkloadConnection(controlUrl)));
  }, TIMEOUT_MS);
  afterAll(async () => {
    await Promise.all(connections.map((each) => each.close()));
    await opened?.close();
  }, TIMEOUT_MS);

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
      made.map((submission, index) => workload.submit(submission, connections[index] as WorkloadConnection)),
    );
  }

  /** What stands in the database about the workload's key, once Control is at rest. */
  async function kept(): Promise<Record<'enrollments' | 'keys' | 'audit', readonly DatabaseRow[]>> {
    await opened.stage.stopControl();
    const { thumbprint } = workload;
    const rows = await opened.database.query({
      enrollments: `select id, key_id from enrollment where thumbprint = '${thumbprint}'`,
      keys: `select key_id from derived_key where thumbprint = '${thumbprint}'`,
      audit: `select kind from audit_event where resource_id in (select key_id from derived_key where thumbprint = '${thumbprint}')`,
    });
    await opened.stage.startControl();
    return rows;
  }

  const keyIdsOf = (verdicts: readonly Verdict<Enrollment>[]) =>
    verdicts.flatMap((verdict) =>
      verdict.kind === 'done' && verdict.value.state === 'issued' ? [verdict.value.key.keyId] : [],
    );

  it(
    'the same submission a thousand times: each is answered with the one key',
    async () => {
      const token = opened.stage.workloadToken('billing');
      const verdicts = await submitAll((challenge) => submissionOf(challenge, token));
      const keyIds = keyIdsOf(verdicts);
      expect(keyIds).toHaveLength(SUBMISSIONS);
      const { enrollments, keys, audit } = await kept();
      expect(keys).toHaveLength(1);
      expect(new Set(keyIds)).toEqual(new Set([keys[0]?.key_id]));
      expect(enrollments.map(({ key_id }) => key_id)).toEqual([keys[0]?.key_id]);
      expect(audit.map(({ kind }) => kind)).toEqual(['proofgate.control.derived_key.issue']);
    },
    TIMEOUT_MS,
  );

  it(
    'ten tokens for one challenge: one of them has the key, the others are refused',
    async () => {
      const tokens = Array.from({ length: 10 }, () => opened.stage.workloadToken('billing'));
      const verdicts = await submitAll((challenge, index) =>
        submissionOf(challenge, tokens[index % tokens.length] ?? ''),
      );
      const keyIds = keyIdsOf(verdicts);
      expect(keyIds).toHaveLength(SUBMISSIONS / tokens.length);
      const refused = verdicts.filter((each) => each.kind === 'refused').map(({ code }) => code);
      expect(refused).toHaveLength(SUBMISSIONS - keyIds.length);
      expect(new Set(refused)).toEqual(new Set(['challenge_consumed']));
      const { enrollments, keys } = await kept();
      expect([enrollments.length, keys.length]).toEqual([1, 1]);
      expect(new Set(keyIds)).toEqual(new Set([keys[0]?.key_id]));
    },
    TIMEOUT_MS,
  );
});
