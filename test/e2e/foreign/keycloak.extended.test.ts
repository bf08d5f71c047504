/**
 * docs/operate/dpop.md with a real Keycloak: its realm has the page's settings, Control fetches its keys for the page's site file, and a
 * real Envoy allows DPoP-bound tokens of client credentials.
 */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, symlinkSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { FollowedGateway } from '../../support/control/followed-gateway.ts';
import { readText } from '../../support/docs/markdown.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { waitFor } from '../../support/wait.ts';
import { type Keycloak, keycloakUnavailable, startKeycloak } from './keycloak-server.ts';

const NODE_MODULES = checkoutPath('.cache', 'sdk-node', 'node_modules');
const missing =
  keycloakUnavailable() ??
  (existsSync(join(NODE_MODULES, 'openid-client')) ? undefined : 'run make sdk-tools');
const PAGE_ISSUER = 'https://login.shop.example/realms/shop';
const SECRET = 'a-client-secret-that-only-tests-know';
const AUDIENCE = 'https://api.shop.example';

/** A client that may use its service account alone, with the page's settings. @param changes over these */
const clientOf = (clientId: string, changes: object = {}) => ({
  ...{ clientId, secret: SECRET, serviceAccountsEnabled: true, standardFlowEnabled: false },
  defaultClientScopes: ['basic', 'service_account', 'orders:read'],
  attributes: BOUND,
  protocolMappers: [AUDIENCE_MAPPER, MARKER],
  ...changes,
});
const BOUND = { 'dpop.bound.access.tokens': 'true', 'access.token.header.type.rfc9068': 'true' };
const mapper = (name: string, kind: string, config: object) => ({
  ...{ name, protocol: 'openid-connect', protocolMapper: kind },
  config: { ...config, 'access.token.claim': 'true' },
});
const AUDIENCE_MAPPER = mapper('audience', 'oidc-audience-mapper', { 'included.custom.audience': AUDIENCE });
const MARKER = mapper('marker', 'oidc-hardcoded-claim-mapper', {
  ...{ 'claim.name': 'caller', 'claim.value': 'service', 'jsonType.label': 'String' },
});

const INCOMPLETE = [
  ['unmarked', { protocolMappers: [AUDIENCE_MAPPER] }, 401],
  ['no-audience', { protocolMappers: [MARKER] }, 401],
  ['no-scope', { defaultClientScopes: ['basic', 'service_account'] }, 403],
  ['plain-type', { attributes: { ...BOUND, 'access.token.header.type.rfc9068': 'false' } }, 401],
] as const;
const CLIENTS = [
  clientOf('billing'),
  ...INCOMPLETE.map(([clientId, changes]) => clientOf(clientId, changes)),
];

async function createRealm({ create }: Keycloak): Promise<void> {
  await create('', { realm: 'shop', enabled: true, accessTokenLifespan: 300 });
  const attributes = { 'include.in.token.scope': 'true' };
  await create('/shop/client-scopes', { name: 'orders:read', protocol: 'openid-connect', attributes });
  for (const client of CLIENTS) await create('/shop/clients', client);
}

(missing === undefined ? describe : describe.skip)('Keycloak', () => {
  let stage: ControlStage;
  let gateway: FollowedGateway;
  let keycloak: Keycloak;
  let issuer = '';
  beforeAll(async () => {
    stage = await ControlStage.start();
    gateway = await FollowedGateway.start(stage);
    const ca = await readFile(join(stage.directory, 'ca.pem'), 'utf8');
    keycloak = await startKeycloak(stage.issuerCertificate, ca);
    await createRealm(keycloak);
    issuer = `${keycloak.origin}/realms/shop`;
    symlinkSync(NODE_MODULES, join(stage.directory, 'node_modules'));
    const program = checkoutPath('test', 'e2e', 'foreign', 'dpop-client.mjs');
    cpSync(program, join(stage.directory, 'dpop-client.mjs'));
    await applyPage();
    await waitFor('an allowed request', async () => {
      const [status] = await read('billing');
      if (status !== 200) throw new Error(`${status} ${gateway.outputs().slice(-600)}`);
      return true;
    });
  });
  afterAll(async () => {
    await keycloak?.stop();
    await gateway?.stop();
    await stage?.stop();
  });

  /** Applies the page's site file, with this Keycloak and the callers of these tests. */
  async function applyPage(): Promise<void> {
    const [, page = ''] = /^```yaml\n(oauth_issuers:.*?)^```$/ms.exec(readText('docs/operate/dpop.md')) ?? [];
    const { oauth_issuers, routes } = parse(page.replaceAll(PAGE_ISSUER, issuer));
    const [route] = routes;
    const [source] = route.allowed_sources;
    const allowed_sources = CLIENTS.map(({ clientId }) => {
      return { ...source, subject_exact: `client_id:${clientId}` };
    });
    const file = join(stage.directory, 'site.yaml');
    const declared = parse(await readFile(file, 'utf8'));
    const others = declared.routes.filter((each: { route_id: string }) => each.route_id !== route.route_id);
    const changed = { ...declared, oauth_issuers, routes: [...others, { ...route, allowed_sources }] };
    await writeFile(file, JSON.stringify(changed));
    await stage.ctl('apply', '-f', file, '--token-dir', stage.directory);
  }

  /** What openid-client gets with a new token of the client. */
  async function read(clientId: string, algorithm = 'ES256'): Promise<readonly number[]> {
    const { host, port } = gateway.envoy;
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(stage.directory, 'ca.pem') };
    const program = join(stage.directory, 'dpop-client.mjs');
    const running = promisify(execFile)(process.execPath, [program], { env });
    const job = {
      ...{ library: 'openid-client', algorithm, issuer, clientId, secret: SECRET },
      ...{ resource: AUDIENCE, relay: { host, port }, urls: [`${gateway.origin}/v1/orders/17`] },
    };
    running.child.stdin?.end(JSON.stringify(job));
    return JSON.parse((await running).stdout);
  }

  it('a client of the page is allowed', async () => {
    gateway.upstream.clear();
    expect(await read('billing')).toEqual([200]);
    const valuesOf = (name: string) =>
      gateway.upstream.requests.map(({ headers }) => headerValues(headers, name));
    expect(valuesOf('x-proofgate-subject')).toEqual([['client_id:billing']]);
    expect(valuesOf('x-proofgate-issuer')).toEqual([[issuer]]);
    expect(valuesOf('authorization')).toEqual([[]]);
  });

  it.each(INCOMPLETE)('a client without a setting is denied: %s', async (client, _, status) => {
    gateway.upstream.clear();
    expect(await read(client)).toEqual([status]);
    expect(gateway.upstream.requests).toEqual([]);
  });

  it('Keycloak itself refuses proofs with alg Ed25519', async () => {
    await expect(read('billing', 'Ed25519')).rejects.toThrow('Unsupported DPoP algorithm');
  });
});
