/**
 * Clients with other people's libraries for DPoP get an access token of a real authorization server (oidc-provider) and read at each
 * kind of enforcement point: npm dpop, oauth4webapi and openid-client, and Nimbus. A relay counts their requests.
 */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { NonceRelay, type Relayed } from '../../support/caller/nonce-relay.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { signDpop } from '../../support/protocol/dpop-signer.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { newHolder, nowSeconds, TRUST_DOMAIN } from '../../support/site/site.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { NONCED, READ, requestsOf, url } from '../dpop/dpop-requests.ts';
import { type GuardedPoint, POINTS, startPoint } from './guarded-points.ts';
import { CLIENT_ID, CLIENT_SECRET, startTokenServer, type TokenServer } from './token-server.ts';

const fixture = useSite('suite');
const NODE_MODULES = checkoutPath('.cache', 'sdk-node', 'node_modules');
const JARS = checkoutPath('.cache', 'sdk-java-clients', 'jars');
const TARGET = '/v1/dpop/4711';
const NONCED_TARGET = '/v1/nonced/4711';

let folder = '';
let certificates: TestCertificates;
let server: TokenServer;
let bundleDirectory = '';
let point: GuardedPoint;
let relay: NonceRelay;

/** Reads the targets with one token. @returns the last status of each */
type Read = (...targets: readonly string[]) => Promise<readonly number[]>;

async function statusesOf(
  program: string,
  args: readonly string[],
  input: object = {},
): Promise<readonly number[]> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificates.ca.certPath };
  const running = promisify(execFile)(program, args, { env });
  running.child.stdin?.end(JSON.stringify(input));
  return JSON.parse((await running).stdout);
}

const npm =
  (library: 'dpop' | 'oauth4webapi' | 'openid-client', algorithm: 'ES256' | 'Ed25519'): Read =>
  (...targets) =>
    statusesOf(process.execPath, [join(folder, 'dpop-client.mjs')], {
      ...{ library, algorithm, issuer: server.issuer, clientId: CLIENT_ID, secret: CLIENT_SECRET },
      ...{ resource: READ.audience, relay: relay.address, urls: targets.map(url) },
    });

const nimbus: Read = (...targets) =>
  statusesOf('java', [
    ...['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', `${folder}:${JARS}/*`, 'DpopClient'],
    ...[`${server.issuer}/token`, CLIENT_ID, CLIENT_SECRET, READ.audience, certificates.ca.certPath],
    ...[relay.address.host, `${relay.address.port}`, ...targets.map(url)],
  ]);

const [hasNpm, hasJars] = [existsSync(join(NODE_MODULES, 'dpop')), existsSync(JARS)];
const CLIENTS: readonly (readonly [name: string, isInstalled: boolean, read: Read])[] = [
  ['npm dpop', hasNpm, npm('dpop', 'Ed25519')],
  ['npm oauth4webapi', hasNpm, npm('oauth4webapi', 'ES256')],
  ['npm openid-client', hasNpm, npm('openid-client', 'Ed25519')],
  ['Nimbus', hasJars, nimbus],
];

beforeAll(async () => {
  folder = mkdtempSync(join(fixture.site.directory, 'clients-'));
  if (hasNpm) symlinkSync(NODE_MODULES, join(folder, 'node_modules'));
  const source = (name: string) => checkoutPath('test', 'e2e', 'foreign', name);
  cpSync(source('dpop-client.mjs'), join(folder, 'dpop-client.mjs'));
  if (hasJars)
    await promisify(execFile)('javac', ['-d', folder, '-cp', `${JARS}/*`, source('DpopClient.java')]);
  certificates = await makeCertificates('localhost', 'spiffe://shop.example/a');
  server = await startTokenServer(certificates, READ.audience);
  fixture.stops.push(() => server.stop());
  const { issuer, keys } = server;
  const oauthIssuers = [{ issuer, trust_domain: TRUST_DOMAIN, keys }];
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, NONCED], oauthIssuers });
});
afterAll(() => certificates.remove());

const answersOf = (relayed: readonly Relayed[]) => relayed.map(({ status }) => status);

describe.each(POINTS)('%s', (name) => {
  beforeAll(async () => {
    point = await startPoint(name, fixture, bundleDirectory);
    const started = await NonceRelay.start(point.address);
    fixture.stops.push(() => started.stop());
    relay = started;
    // A replay store that has just started refuses proofs of its past.
    await waitFor('an allowed request', async () => {
      const { status } = await http1Client(point.address).send(requestsOf(fixture.site).dpopRequest());
      return status === 200 || undefined;
    });
  });
  beforeEach(() => {
    relay.alwaysAsks = false;
    relay.take();
    point.arrived();
  });

  for (const [client, isInstalled, read] of CLIENTS) {
    (isInstalled ? describe : describe.skip)(client, () => {
      it('reads with its token, which nothing else can use', async () => {
        expect(await read(TARGET)).toEqual([200]);
        const [only, ...more] = relay.take();
        expect(more).toEqual([]);
        const arrived = point.arrived().map((request) => request.headers);
        expect(arrived.map((lines) => headerValues(lines, 'x-proofgate-subject'))).toEqual([
          [`sub:${CLIENT_ID}`],
        ]);
        for (const removed of ['authorization', 'dpop'])
          expect(headerValues(arrived[0] ?? [], removed)).toEqual([]);

        const authorization = String(only?.headers.authorization);
        const token = authorization.slice('DPoP '.length);
        const sent = { authorization, dpop: String(only?.headers.dpop) };
        const thief = {
          ...{ key: newHolder(fixture.site.secrets), method: 'GET', url: url(TARGET), token },
          issuedAtSeconds: nowSeconds(),
        };
        const attacks: readonly (readonly [string, Readonly<Record<string, string>>, number])[] = [
          ['the proof again', sent, 403],
          ['as a bearer', { authorization: `Bearer ${token}` }, 401],
          ['as a bearer with the proof', { ...sent, authorization: `Bearer ${token}` }, 401],
          ['without a proof', { authorization }, 401],
          ["a thief's proof", { ...sent, dpop: signDpop(thief) }, 401],
        ];
        for (const [what, lines, expected] of attacks) {
          const { status } = await http1Client(point.address).send({
            ...{ method: 'GET', target: TARGET, authority: AUTHORITY, headers: Object.entries(lines) },
          });
          expect([what, status]).toEqual([what, expected]);
        }
        expect(point.arrived()).toEqual([]);
      });

      it('repeats once for a nonce, keeps it, and replaces a stale one', async () => {
        relay.nextNonces.push(undefined, 'stale');
        expect(await read(NONCED_TARGET, NONCED_TARGET, NONCED_TARGET)).toEqual([200, 200, 200]);
        const relayed = relay.take();
        expect(answersOf(relayed)).toEqual([401, 200, 200, 401, 200]);
        const [first, second, third, stale, last] = relayed;
        expect(relayed.map(({ nonce }) => nonce)).toEqual([
          ...[undefined, first?.given, first?.given, 'stale', stale?.given],
        ]);
        expect(new Set([second, third, last].map((request) => request?.jti)).size).toBe(3);
        expect(point.arrived()).toHaveLength(3);
      });

      it('does not loop where every answer asks for a nonce', async () => {
        relay.alwaysAsks = true;
        expect(await read(NONCED_TARGET)).toEqual([401]);
        expect(answersOf(relay.take())).toEqual([401, 401]);
        expect(point.arrived()).toEqual([]);
      });
    });
  }
});
