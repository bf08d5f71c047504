/**
 * Tests three `proofgate control` on one PostgreSQL under one master key: each of them answers, one of them publishes, and when
 * that one is killed another continues from the same position.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ControlDatabase, postgresDatabase } from '../../support/control/control-database.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { startInstance } from '../../support/control/control-instance.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { submissionOf, Workload, WorkloadConnection } from '../../support/control/workload.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import type { Service } from '../../support/harness/sidecar.ts';
import { machineSlowness, waitFor } from '../../support/wait.ts';
import { Acknowledged } from './campaign/acknowledged.ts';
import { brokenPromises, readContents } from './campaign/kept-promises.ts';
import { SiteFollower } from './campaign/site-follower.ts';

const INSTANCES = 3;
/** Jobs that one instance does for all. */
const LEADING_JOBS = 7;

interface Instance {
  readonly name: string;
  readonly url: string;
  readonly service: Service;
  readonly connection: WorkloadConnection;
  readonly follower: SiteFollower;
}

let server: TestPostgresServer;
let databaseUrl = '';
let database: ControlDatabase;
let stage: ControlStage;
let policy = '';
let reviewed = '';
const instances: Instance[] = [];
const acknowledged = new Acknowledged();

beforeAll(async () => {
  server = await TestPostgresServer.start();
  databaseUrl = await server.createDatabase();
  database = postgresDatabase(server, databaseUrl);
  const targets = Array.from({ length: INSTANCES }, (_, index) => `target-${index}`);
  stage = await ControlStage.start({ databaseUrl, targets });
  policy = String((await stage.policy('billing')).reference);
  reviewed = String((await stage.policy('reviewed')).reference);
  const urls = [stage.controlUrl];
  const services = [stage.control];
  for (let index = 1; index < INSTANCES; index++) {
    const port = await freePort();
    const dataDirectory = join(stage.directory, `data-${index}`);
    await mkdir(dataDirectory);
    const flags = ['--master-key-file', join(stage.dataDirectory, 'master-key')];
    services.push(await startInstance(stage.instanceSettings({ port, dataDirectory, flags })));
    urls.push(`http://127.0.0.1:${port}`);
  }
  for (const [index, service] of services.entries()) {
    const url = urls[index] ?? '';
    const follower = await SiteFollower.start({
      stage,
      controlUrl: url,
      stateDirectory: join(stage.directory, `state-${index}`),
      tokenFile: join(stage.directory, `target-${index}.token`),
    });
    const connection = new WorkloadConnection(url);
    instances.push({ name: `instance ${index}`, url, service, connection, follower });
  }
});

afterAll(async () => {
  for (const { follower, connection, service } of instances) {
    await follower.stop();
    await connection.close();
    if (service.exitStatus() === undefined && service !== instances[0]?.service) await service.stop();
  }
  await stage?.stop();
  await server?.stop();
});

function at(index: number): Instance {
  const found = instances[index % instances.length];
  if (found === undefined) throw new Error('no instance');
  return found;
}

const living = () => instances.filter(({ service }) => service.exitStatus() === undefined);

/** The challenge from one instance, the submission to another. @returns the key ID */
async function enroll(challenger: Instance, submitter: Instance): Promise<string> {
  const workload = new Workload(policy, stage.controlUrl);
  const challenge = await workload.challenge(challenger.connection);
  if (challenge === undefined) throw new Error(`${challenger.name} gave no challenge`);
  const submission = submissionOf(challenge, stage.workloadToken('billing'));
  const verdict = await workload.submit(submission, submitter.connection);
  if (verdict.kind !== 'done' || verdict.value.state !== 'issued') throw new Error(JSON.stringify(verdict));
  acknowledged.submission(challenge.challengeId, workload.thumbprint, verdict.value);
  return verdict.value.key.keyId;
}

/** @returns milliseconds until the follower decides by the key */
async function seen(keyId: string, { name, follower }: Instance): Promise<number> {
  const begin = performance.now();
  await waitFor(`${name}'s follower to have ${keyId}`, () =>
    follower.statusOf(keyId) === 'active' ? true : undefined,
  );
  return performance.now() - begin;
}

/** How many documents it has published. */
function publishedBy({ service }: Instance): number {
  return service.stderrLines.filter((line) => line.includes('"event":"published"')).length;
}

describe('any instance', () => {
  it('answers for all: a challenge from one, its submission to another, the outcome from the third', async () => {
    for (let index = 0; index < INSTANCES; index++) {
      const workload = new Workload(policy, stage.controlUrl);
      const challenge = await workload.challenge(at(index).connection);
      if (challenge === undefined) throw new Error('no challenge');
      const submission = submissionOf(challenge, stage.workloadToken('billing'));
      const submitted = await workload.submit(submission, at(index + 1).connection);
      if (submitted.kind !== 'done' || submitted.value.state !== 'issued') throw new Error(submitted.kind);
      const { enrollmentId, key } = submitted.value;
      acknowledged.submission(challenge.challengeId, workload.thumbprint, submitted.value);
      const polled = await workload.poll(enrollmentId, at(index + 2).connection);
      expect(polled).toMatchObject({ kind: 'done', value: { enrollmentId, key: { keyId: key.keyId } } });
    }
  });

  it('tells its targets of what was changed through the others', async () => {
    const delaysMs: number[] = [];
    for (let round = 0; round < 2 * INSTANCES; round++) {
      const keyId = await enroll(at(round), at(round));
      const others = instances.filter((each) => each !== at(round));
      delaysMs.push(...(await Promise.all(others.map((each) => seen(keyId, each)))));
    }
    const sorted = delaysMs.sort((a, b) => a - b).map(Math.round);
    process.stdout.write(`seen through another instance after ms: ${sorted.join(' ')}\n`);
  });

  it('and all at once make one key of one challenge', async () => {
    const workload = new Workload(policy, stage.controlUrl);
    const challenge = await workload.challenge(at(0).connection);
    if (challenge === undefined) throw new Error('no challenge');
    const submission = submissionOf(challenge, stage.workloadToken('billing'));
    const connections = Array.from({ length: 150 }, (_, index) => new WorkloadConnection(at(index).url));
    const verdicts = await Promise.all(connections.map((each) => workload.submit(submission, each)));
    await Promise.all(connections.map((each) => each.close()));
    const keyIds = verdicts.flatMap((verdict) =>
      verdict.kind === 'done' && verdict.value.state === 'issued' ? [verdict.value.key.keyId] : [],
    );
    expect(keyIds).toHaveLength(connections.length);
    expect(new Set(keyIds).size).toBe(1);
  });
});

describe('one instance', () => {
  it('publishes, and no other; each job has one place', async () => {
    expect(instances.map(publishedBy).filter((count) => count > 0)).toHaveLength(1);
    const { locks } = await database.query({
      locks: `select objid, pid from pg_locks where locktype = 'advisory' and granted
        and database = (select oid from pg_database where datname = current_database())`,
    });
    expect(locks).toHaveLength(LEADING_JOBS);
  });

  it('does what is due: an enrollment expires once', async () => {
    const workload = new Workload(reviewed, stage.controlUrl);
    const challenge = await workload.challenge(at(1).connection);
    if (challenge === undefined) throw new Error('no challenge');
    const submission = submissionOf(
      challenge,
      stage.workloadToken('reviewed', { expiresInSeconds: Math.ceil(4 * machineSlowness()) }),
    );
    const verdict = await workload.submit(submission, at(2).connection);
    if (verdict.kind !== 'done') throw new Error(verdict.kind);
    const { enrollmentId } = verdict.value;
    const events = await waitFor('it to be expired', async () => {
      const { audit } = await database.query({
        audit: `select kind from audit_event where resource_id = '${enrollmentId}' and kind like '%.expire'`,
      });
      return audit.length > 0 ? audit : undefined;
    });
    expect(events).toHaveLength(1);
  });

  it('killed: another publishes, keeps fresh, and continues the chain', async () => {
    const leader = instances.find((each) => publishedBy(each) > 0);
    if (leader === undefined) throw new Error('no instance publishes');
    const [first] = instances;
    if (leader === first) await stage.stopControl('SIGKILL');
    else {
      leader.service.signal('SIGKILL');
      await leader.service.exited;
    }
    const survivors = living();
    expect(survivors).toHaveLength(INSTANCES - 1);
    const [one, other] = survivors;
    if (one === undefined || other === undefined) throw new Error('no instance is left');
    const freshBefore = other.follower.loader.snapshot?.freshAsOfSeconds ?? 0;
    const keyId = await enroll(one, other);
    for (const each of survivors) await seen(keyId, each);
    await waitFor('a younger statement', () =>
      survivors.every(({ follower }) => (follower.loader.snapshot?.freshAsOfSeconds ?? 0) > freshBefore)
        ? true
        : undefined,
    );
    expect(survivors.map(publishedBy).filter((count) => count > 0)).toHaveLength(1);
    if (leader === first) await stage.startControl();
  });
});

it('in the end nothing is lost, nothing doubled, and the chain has one end', async () => {
  const contents = await readContents(database);
  expect(brokenPromises(contents, acknowledged)).toEqual([]);
  expect(instances.flatMap(({ follower }) => follower.problems)).toEqual([]);
  const { revision } = await stage.ctl('get', 'propagation', SITE_ID);
  expect(revision).toBe(contents.steps.at(-1)?.revision);
});
