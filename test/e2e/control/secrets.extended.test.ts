/**
 * Tests that no secret leaks: searches all output and files of a whole run for private keys, tokens, challenges, signatures,
 * passports, proofs and the bootstrap token. On both databases.
 */
import { createPrivateKey } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import { MasterKey } from '../../../src/control/secrets/master-key.ts';
import { DATABASE_FILE } from '../../../src/control/store/sqlite.ts';
import { isJsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import {
  type ControlDatabase,
  postgresDatabase,
  sqliteDatabase,
} from '../../support/control/control-database.ts';
import { ControlStage, type EnrolledKey } from '../../support/control/control-fixture.ts';
import { adminUrl } from '../../support/control/control-instance.ts';
import { FollowedGateway } from '../../support/control/followed-gateway.ts';
import { SITE_ID, TARGET_NAME } from '../../support/control/site-declaration.ts';
import { submissionOf, Workload, WorkloadConnection } from '../../support/control/workload.ts';
import { dumpText } from '../../support/harness/postgres-dump.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { Secrets } from '../../support/site/secrets.ts';
import { httpGet } from '../../support/wait.ts';
import { crawlApi } from './campaign/api-crawl.ts';
import { ProcessArguments } from './campaign/process-arguments.ts';

const ALLOWED = { status: 200, reason: '' };

interface Opened {
  readonly stage: ControlStage;
  readonly database: ControlDatabase;
  /** Whether commands are processes, whose arguments anybody can see. */
  readonly commandProcesses: boolean;
  /** Every byte that is kept, one character each. Control runs. */
  keptBytes(): Promise<string>;
  close(): Promise<void>;
}

async function openSqlite(): Promise<Opened> {
  const stage = await ControlStage.start({ commandProcesses: true });
  const { dataDirectory } = stage;
  return {
    stage,
    database: sqliteDatabase(dataDirectory),
    commandProcesses: true,
    async keptBytes() {
      const files = (await readdir(dataDirectory)).filter((name) => name.startsWith(DATABASE_FILE));
      const texts = await Promise.all(files.map((name) => readFile(join(dataDirectory, name), 'latin1')));
      return texts.join('\n');
    },
    close: () => stage.stop(),
  };
}

async function openPostgres(): Promise<Opened> {
  const server = await TestPostgresServer.start();
  const databaseUrl = await server.createDatabase();
  const stage = await ControlStage.start({ databaseUrl });
  stage.secrets.add('the password of the database', server.password);
  return {
    stage,
    database: postgresDatabase(server, databaseUrl),
    commandProcesses: false,
    async keptBytes() {
      const file = join(stage.directory, 'dump.sql');
      await dumpText(databaseUrl, file);
      return readFile(file, 'latin1');
    },
    async close() {
      await stage.stop();
      await server.stop();
    },
  };
}

describe.each([
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
])('a run on %s', (_, open) => {
  let opened: Opened;
  let stage: ControlStage;
  let gateway: FollowedGateway;
  let enrolled: EnrolledKey;
  let processArguments: ProcessArguments;
  let connection: WorkloadConnection;
  const bearerTokens: string[] = [];
  /** Answers to requests with a secret where none belongs. */
  const answers: string[] = [];
  let kept = '';

  beforeAll(async () => {
    processArguments = new ProcessArguments();
    opened = await open();
    ({ stage } = opened);
    gateway = await FollowedGateway.start(stage);
    connection = new WorkloadConnection(stage.controlUrl, ({ body, authorization }) => {
      const submitted = body === undefined ? undefined : parseStrictJson(body);
      const signature = isJsonObject(submitted) ? submitted.signature : undefined;
      if (typeof signature === 'string') stage.secrets.add('the signature of a submission', signature);
      const word = authorization?.split('.')[1];
      if (word !== undefined) stage.secrets.add('the signature of a poll', word);
    });
    await liveThrough();
    await misplaceSecrets();
    kept = await opened.keptBytes();
    await collectSecretsOfControl();
  });
  afterAll(async () => {
    processArguments?.stop();
    await connection?.close();
    await gateway?.stop();
    await opened?.close();
  });

  /** Keys of all fates, requests of all outcomes, tokens of all kinds. */
  async function liveThrough(): Promise<void> {
    enrolled = await stage.enroll('billing');
    const revoked = await stage.enroll('billing');
    const pending = await stage.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
    const wrong = await stage.tokenFor('billing', { claims: { sub: 'system:serviceaccount:prod:other' } });
    const refused = await stage.tryEnroll('billing', { tokenFile: wrong });
    expect([pending.exitCode, refused.exitCode]).toEqual([4, 3]);
    for (const { keyFile } of [enrolled, revoked, pending, refused]) await addKeyFile(keyFile);
    await gateway.awaitOutcome(enrolled.keyFile, ALLOWED);
    await stage.ctl('revoke', revoked.keyId, '--reason', 'test');
    await gateway.awaitOutcome(revoked.keyFile, { status: 401 });
    const url = `${gateway.origin}/v1/orders/7`;
    const signedFile = join(stage.directory, 'signed');
    await stage.run(['sign', 'GET', url, '--key', enrolled.keyFile, '--out', signedFile]);
    for (const line of (await readFile(signedFile, 'utf8')).split('\n').filter(Boolean)) {
      stage.secrets.add('a signed header', line.slice(line.indexOf(': ') + 2));
    }
    await stage.run(['request', 'GET', url, '--key', enrolled.keyFile]);
    await enrollInProcess();
    await makeTokens();
  }

  async function addKeyFile(keyFile: string): Promise<void> {
    const pem = await readFile(keyFile, 'utf8').catch(() => undefined);
    if (pem !== undefined) stage.secrets.addPrivateKey('a key of a workload', createPrivateKey(pem));
  }

  async function enrollInProcess(): Promise<void> {
    const { reference } = await stage.policy('billing');
    const workload = new Workload(String(reference), stage.controlUrl);
    stage.secrets.addPrivateKey('a key of a workload', workload.privateKey);
    const challenge = await workload.challenge(connection);
    if (challenge === undefined) throw new Error('no challenge');
    for (const token of ['', 'wrong'].map((more) => stage.workloadToken('billing') + more)) {
      const verdict = await workload.submit(submissionOf(challenge, token), connection);
      if (verdict.kind === 'done') await workload.poll(verdict.value.enrollmentId, connection);
    }
  }

  async function makeTokens(): Promise<void> {
    bearerTokens.push(
      (await readFile(stage.tokenFile, 'utf8')).trim(),
      (await readFile(join(stage.directory, `${TARGET_NAME}.token`), 'utf8')).trim(),
    );
    const api = await stage.api();
    const scope = { kind: 'site', id: SITE_ID };
    const created = await api.create('/v1/access-tokens', {
      body: { name: 'automation', role: 'viewer', scope },
    });
    const path = `/v1/access-tokens/${String(created.body.access_token_id)}`;
    const rotated = await api.act(`${path}/rotate`);
    const target = await api.create(`/v1/sites/${SITE_ID}/targets`, { body: { name: 'another' } });
    bearerTokens.push(...[created, rotated, target].map(({ body }) => String(body.token)));
    await api.close();
    for (const token of bearerTokens) stage.secrets.add('a bearer token', token);
  }

  /** What people and programs get wrong: an answer, an error or a log line could hold it. */
  async function misplaceSecrets(): Promise<void> {
    const [bootstrap = ''] = bearerTokens;
    const workloadToken = stage.workloadToken('billing');
    stage.secrets.add('a workload token', workloadToken);
    const send = async (path: string, init: RequestInit = {}) => {
      const answer = await fetch(`${stage.controlUrl}${path}`, init);
      answers.push(`${JSON.stringify([...answer.headers])}\n${await answer.text()}`);
      expect(answer.status).toBeGreaterThanOrEqual(400);
    };
    const post = (path: string, body: string) =>
      send(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const bearer = { authorization: `Bearer ${bootstrap}` };
    await send(`/v1/nowhere?access_token=${bootstrap}`);
    await send(`/v1/derived-keys/${workloadToken.slice(-120)}`, { headers: bearer });
    await send(`/v1/sites/${SITE_ID}/clients?limit=${bootstrap}`, { headers: bearer });
    await send(`/v1/${bootstrap}`, { headers: bearer });
    await send('/v1/session', { headers: { authorization: `Bearer ${workloadToken}` } });
    await send('/v1/session', { headers: { authorization: `Basic ${bootstrap}` } });
    await post('/v1/enrollments', `{"workload_token":"${workloadToken}"`);
    await post('/v1/enrollments', JSON.stringify({ workload_token: workloadToken, [workloadToken]: 1 }));
    await post('/v1/enrollments', JSON.stringify({ challenge_id: workloadToken.slice(-60), signature: 'x' }));
    await post('/v1/enrollments/challenges', JSON.stringify({ policy: bootstrap, provider: bootstrap }));
    await post('/v1/targets/self/acks', JSON.stringify({ revision: 1, head: bootstrap }));
  }

  /** What only Control's own files tell: its master key, the sites' signing keys, every challenge that it gave. */
  async function collectSecretsOfControl(): Promise<void> {
    const text = (await readFile(join(stage.dataDirectory, 'master-key'), 'utf8')).trim();
    const bytes = Buffer.from(text, 'base64url');
    const masterKey = new MasterKey(bytes);
    stage.secrets.addBytes('the master key', bytes);
    await stage.stopControl();
    const { signers, challenges, hashes } = await opened.database.query({
      signers: 'select id, sealed_private_key from signing_key',
      challenges: 'select id, policy_id, thumbprint from challenge',
      hashes: `select token_hash as hash from target union select token_hash from access_token
        union select bootstrap_token_hash from installation`,
    });
    await stage.startControl();
    for (const { id, sealed_private_key: sealed } of signers) {
      const der = masterKey.unseal(String(sealed), `signing-key:${id}`);
      stage.secrets.addPrivateKey(
        'a signing key of the site',
        createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }),
      );
    }
    for (const { id, policy_id: policy, thumbprint } of challenges) {
      const challenge = masterKey.challenge(String(id), String(policy), String(thumbprint));
      stage.secrets.add('a challenge', challenge);
    }
    expect(signers.length).toBeGreaterThanOrEqual(2);
    expect(challenges.length).toBeGreaterThanOrEqual(4);
    keptHashes.push(...hashes.map(({ hash }) => String(hash)));
  }
  const keptHashes: string[] = [];

  it('stands in no log, no output and no argument', async () => {
    processArguments.look();
    expect(stage.secrets.foundIn(stage.outputs())).toEqual([]);
    expect(stage.secrets.foundIn(gateway.outputs())).toEqual([]);
    const commandLines = [...processArguments.seen].join('\n');
    expect(commandLines).toContain(' control --data-dir ');
    if (opened.commandProcesses) expect(commandLines).toContain(' enroll --control-url ');
    expect(commandLines).toContain(' verifier --auth-site ');
    expect(stage.secrets.foundIn(commandLines)).toEqual([]);
  });

  it('stands in no metric', async () => {
    const url = adminUrl(stage.control.stderrLines, '/metrics');
    const texts = [await httpGet(url ?? ''), await httpGet(gateway.metricsUrl)].map(({ text }) => text);
    expect(texts.map((text) => text.includes('proofgate_'))).toEqual([true, true]);
    expect(stage.secrets.foundIn(texts.join('\n'))).toEqual([]);
  });

  it('is in no answer to an operator who may read everything, audit events included', async () => {
    const crawled = await crawlApi(stage.controlUrl, bearerTokens[0] ?? '');
    const read = new Set(crawled.filter(({ status }) => status === 200).map(({ template }) => template));
    for (const template of [
      '/v1/audit-events',
      '/v1/access-tokens/{access_token_id}',
      '/v1/targets/{target_id}',
      '/v1/enrollments/{enrollment_id}',
      '/v1/derived-keys/{key_id}',
      '/v1/sites/{site_id}/signing-keys',
      '/v1/enrollment-policies/{policy_id}/command',
    ]) {
      expect([...read]).toContain(template);
    }
    expect(stage.secrets.foundIn(crawled.map(({ text }) => text).join('\n'))).toEqual([]);
  });

  it('stands in no answer to a request that has it in the wrong place', () => {
    expect(answers.length).toBeGreaterThan(10);
    expect(stage.secrets.foundIn(answers.join('\n'))).toEqual([]);
  });

  it('stands in no byte of the database: of bearer tokens their hashes alone', () => {
    expect(stage.secrets.foundIn(kept)).toEqual([]);
    // All but the one that was rotated away.
    const hashes = bearerTokens.map(tokenHash);
    expect(hashes.filter((hash) => keptHashes.includes(hash))).toHaveLength(bearerTokens.length - 1);
    for (const hash of keptHashes) expect(kept).toContain(hash);
  });

  it('is found where it does stand: in what delivers it, and by this search', async () => {
    const known = new Secrets();
    known.add('a key ID', enrolled.keyId);
    for (const text of [kept, stage.outputs(), gateway.outputs()]) {
      expect(known.foundIn(text)).toEqual(['a key ID']);
    }
    const delivered = await readFile(stage.tokenFile, 'utf8');
    expect(stage.secrets.foundIn(delivered)).not.toEqual([]);
  });
});
