/**
 * A key enrolled at Control with a JWT-SVID of real SPIRE: its OIDC discovery provider is a source of kind `oidc_jwks`.
 * Source: docs/operate/control.md "Sources and tokens".
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { isJsonObject } from '../../../src/protocol/strict-json.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { type CommandResult, errorCode } from '../../support/harness/proofgate-command.ts';
import { newOidcIssuer, type OidcProvider, startOidcProvider } from './oidc-provider.ts';
import { type StartedSpire, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';
import type { SpireServer } from './spire-server.ts';

const SITE_ID = 'shop-spire';
const AUDIENCE = 'proofgate-shop-spire';
const BILLING = '/ns/prod/sa/billing';
const SHIPPING = '/ns/prod/sa/shipping';
/** Of no policy. */
const REPORTING = '/ns/prod/sa/reporting';

describeWithSpire('SPIRE as a source of enrollment', () => {
  const spire = useSpire();
  let stage: ControlStage;
  let provider: OidcProvider;
  let started: StartedSpire;
  let issuer: string;

  beforeAll(async () => {
    stage = await ControlStage.start();
    issuer = await newOidcIssuer();
    started = await spire.start(
      [BILLING, SHIPPING, REPORTING].map((path) => ({ path })),
      { jwtIssuer: issuer },
    );
    provider = await startOidcProvider({
      ...{ issuer, serverSocketPath: started.server.socketPath },
      ...{ certificate: stage.issuerCertificate, folder: stage.directory },
    });
    const file = join(stage.directory, 'spire-site.yaml');
    await writeFile(file, siteYaml(issuer, provider.jwksUri, started.server));
    await stage.ctl('apply', '-f', file, '--token-dir', stage.directory);
  });
  afterAll(async () => {
    await provider?.stop();
    await stage?.stop();
  });

  const jwtSvid = (path: string, audience = AUDIENCE) =>
    started.agent.jwtSvid(started.server.id(path), audience);

  /** For the policy's client, with a JWT-SVID that may be another workload's. */
  async function enroll(policyName: string, token: string): Promise<CommandResult> {
    const tokenFile = `${stage.newKeyFile()}.jwt`;
    await writeFile(tokenFile, token, { mode: 0o600 });
    const { items } = await stage.ctl('get', 'policies', '--site', SITE_ID);
    const policies = Array.isArray(items) ? items.filter(isJsonObject) : [];
    const policy = policies.find(({ display_name }) => display_name === policyName);
    return stage.run([
      ...['enroll', '--control-url', stage.controlUrl, '--policy', String(policy?.reference)],
      ...['--proof-file', tokenFile, '--private-key-out', stage.newKeyFile(), '--output', 'json'],
    ]);
  }

  it('enrolls a workload that the policy names, until its JWT-SVID ends', async () => {
    const { exitCode, stdout, stderr } = await enroll(BILLING, await jwtSvid(BILLING));
    expect([exitCode, stderr]).toEqual([0, '']);
    const { expires_at, key_id, status } = JSON.parse(stdout);
    expect(status).toBe('active');
    // JWT-SVIDs of this server live for 60 s.
    expect(Date.parse(expires_at)).toBeLessThanOrEqual(Date.now() + 60_000);
    expect(await stage.key(key_id)).toMatchObject({
      verified_issuer: issuer,
      verified_subject: started.server.id(BILLING),
    });
  });

  it('rejects another workload, and a JWT-SVID for another audience', async () => {
    expect(errorCode(await enroll(BILLING, await jwtSvid(REPORTING)))).toBe('token_subject');
    const elsewhere = await jwtSvid(BILLING, 'https://elsewhere.example');
    expect(errorCode(await enroll(BILLING, elsewhere))).toBe('token_audience');
  });

  it("follows a new JWT key of SPIRE, and goes on with the former one's tokens", async () => {
    const former = await jwtSvid(BILLING);
    const nextKeyId = await started.server.prepareJwtKey();
    await provider.publishes(nextKeyId);
    await started.server.activateJwtKey(nextKeyId);
    const next = await jwtSvid(SHIPPING);
    expect([keyIdOf(next), keyIdOf(former)]).toEqual([nextKeyId, expect.not.stringMatching(nextKeyId)]);
    expect(await enroll(SHIPPING, next)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await enroll(BILLING, former)).toMatchObject({ exitCode: 0, stderr: '' });
  });
});

function keyIdOf(token: string): string {
  const { kid } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString());
  return kid;
}

function siteYaml(issuer: string, jwksUri: string, server: SpireServer): string {
  return stringify({
    format: 'proofgate.site/v1',
    ...{ environment: 'test', fleet: 'one' },
    site: {
      ...{ site_id: SITE_ID, trust_domain: 'shop.example', origins: ['https://spire.shop.example'] },
      ...{ issuer_url: `https://control.shop.example/sites/${SITE_ID}`, single_verifier: true },
    },
    clients: [
      { client_id: 'billing', subject: 'client:billing', grants: [{ resource: 'orders', access: 'read' }] },
    ],
    sources: [
      {
        ...{ name: 'spire', issuer, jwks_uri: jwksUri, audience: AUDIENCE },
        expected_scope: issuer.slice('https://'.length),
      },
    ],
    enrollment_policies: [BILLING, SHIPPING].map((path) => ({
      ...{ name: path, source: 'spire', client: 'billing', approval: 'automatic' },
      ...{ max_key_lifetime_seconds: 3600, verified_subject: server.id(path) },
    })),
  });
}
