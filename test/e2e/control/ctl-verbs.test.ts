/** Plays every verb of `proofgate ctl` against a running Control, as a transcript. */
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { playTranscript } from '../../support/cli/play-transcript.ts';
import { parseTranscript } from '../../support/cli/transcript.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { AUDIENCE, SITE_ID } from '../../support/control/site-declaration.ts';
import { publishedKey } from '../../support/fakes/broker-key-server.ts';

let stage: ControlStage;
let stale: Server;
const names: Record<string, string> = {};

beforeAll(async () => {
  stage = await ControlStage.start();
  const scope = stage.issuer.issuer.slice('https://'.length);
  const reviewed = await stage.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  expect(reviewed.exitCode).toBe(4);
  const [waiting] = await stage.list('enrollments');
  await stage.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  const another = (await stage.list('enrollments')).find(
    ({ enrollment_id: id }) => id !== waiting?.enrollment_id,
  );
  const { keyId } = await stage.enroll('billing');
  const second = await stage.enroll('billing');
  stale = await startStaleProxy();
  const { port } = stale.address() as AddressInfo;
  Object.assign(names, {
    CONTROL: stage.controlUrl,
    DIR: stage.directory,
    ENROLLMENT: String(waiting?.enrollment_id),
    ISSUER: stage.issuer.issuer,
    KEY: keyId,
    SCOPE: scope,
    SECOND: second.keyId,
    STALE: `http://127.0.0.1:${port}`,
    TOKEN: stage.tokenFile,
    WAITING: String(another?.enrollment_id),
  });
});
afterAll(async () => {
  stale?.closeAllConnections();
  stale?.close();
  await stage?.stop();
});

/** Two sources, policies, targets and access tokens of one name, another source, and brokers without keys. */
async function addTwins(): Promise<void> {
  const api = await stage.api();
  const site = `/v1/sites/${SITE_ID}`;
  const [source] = await api.list(`${site}/sources`);
  const { issuer, jwksUri: jwks_uri } = stage.issuer;
  for (const audience of [`${AUDIENCE}-1`, `${AUDIENCE}-2`]) {
    const coordinates = { issuer, jwks_uri, audience };
    await api.create(`${site}/sources`, {
      body: { kind: 'oidc_jwks', display_name: 'twin', ...coordinates },
    });
    await api.create(`${site}/enrollment-policies`, {
      body: {
        display_name: 'twin',
        source_id: source?.source_id,
        source_revision: 1,
        client_id: 'billing',
        approval: 'manual',
        max_key_lifetime_seconds: 3600,
        verified_issuer: issuer,
        verified_subject: `system:serviceaccount:prod:${audience}`,
      },
    });
    await api.create(`${site}/targets`, { body: { name: 'twin' } });
    const scope = { kind: 'site', id: SITE_ID };
    await api.create('/v1/access-tokens', { body: { name: 'twin', role: 'viewer', scope } });
  }
  await api.create(`${site}/targets`, { body: { name: 'gateway-1' } });
  const coordinates = { issuer, jwks_uri, audience: `${AUDIENCE}-3` };
  await api.create(`${site}/sources`, {
    body: { kind: 'oidc_jwks', display_name: 'new cluster', ...coordinates },
  });
  for (const [broker, trust_domain] of [
    ['keys', 'shop.example'],
    ['twin', 'one.example'],
    ['twin', 'two.example'],
  ]) {
    const definition = {
      trust_domain,
      subject_prefixes: [`spiffe://${trust_domain}/`],
      key_binding: 'software',
    };
    const path = `${site}/brokers/${encodeURIComponent(`https://${broker}.example`)}/${trust_domain}`;
    await api.put(path, { body: { definition: { ...definition, keys: [] } } });
  }
  await writeFile(
    join(stage.directory, 'jwks.json'),
    JSON.stringify({ keys: [publishedKey('bk-1', generateSigningKey('Ed25519').publicKey)] }),
  );
  await api.close();
}

/** Control behind a proxy that answers every read with an outdated ETag, as if somebody else had changed the resource since. */
function startStaleProxy(): Promise<Server> {
  const server = createServer((request, response) => {
    const { headers: asked, method } = request;
    const onward = httpRequest(`${stage.controlUrl}${request.url}`, { headers: asked, method }, (answer) => {
      const { etag, ...headers } = answer.headers;
      const outdated = etag === undefined ? {} : { etag: '"999"' };
      response.writeHead(answer.statusCode ?? 502, { ...headers, ...outdated });
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

function play(file: string): Promise<void> {
  const transcript = parseTranscript(readFileSync(join(import.meta.dirname, file), 'utf8'));
  return playTranscript(transcript, (args, { env }) => runInProcess(args, env), stage.directory, names);
}

it('plays ctl-apply.txt', async () => {
  const siteFile = join(stage.directory, 'site.yaml');
  const site = parse(await readFile(siteFile, 'utf8'));
  site.site.display_name = 'Changed';
  await writeFile(join(stage.directory, 'changed.yaml'), stringify(site));
  await play('ctl-apply.txt');
});

it('plays ctl-verbs.txt', async () => {
  await addTwins();
  await play('ctl-verbs.txt');
});

it('has told the audit trail why, for each verb that takes a reason', async () => {
  const connection = [
    '--control-url',
    stage.controlUrl,
    '--token-file',
    join(stage.directory, 'viewer.token'),
  ];
  const { stdout } = await stage.run([
    'ctl',
    'get',
    'audit',
    '--since',
    '24h',
    '--output',
    'jsonl',
    ...connection,
  ]);
  const told = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ reason }) => reason !== undefined)
    .map(({ kind, reason }) => `${String(kind).replace('proofgate.control.', '')}: ${String(reason)}`);
  expect(told.toSorted()).toEqual([
    'access_token.create: why token',
    'blocked_caller.block: why block-caller',
    'blocked_caller.unblock: why unblock-caller',
    'blocked_subject.block: why block',
    'blocked_subject.unblock: why unblock',
    'derived_key.issue: why approve',
    'derived_key.revoke: why revoke',
    'enrollment.approve: why approve',
    'enrollment.deny: why deny',
    'enrollment_policy.deactivate: why deactivate',
    'enrollment_policy.reactivate: why reactivate',
    'enrollment_policy.rebind: why rebind',
    'role_grant.create: why create',
    'role_grant.delete: why delete',
    'site.change: why apply',
    'source_revision.activate: why activate',
    'source_revision.resume: why resume',
    'source_revision.retire: why retire',
    'source_revision.suspend: why suspend',
  ]);
});
