/** Tests mutual TLS between a real Envoy and the verifier, and certificates that change under load. */

import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type SecureContextOptions } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type CertificateFiles,
  makeCertificates,
  type TestCertificates,
} from '../support/harness/certificates.ts';
import { type ConfigEdit, shipped } from '../support/harness/envoy-config.ts';
import { IS_EXTENDED } from '../support/lane.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import type { Gateway } from '../support/site/gateway.ts';
import { expectAllowed, observe } from '../support/site/observe.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { startTraffic } from '../support/site/traffic.ts';
import type { VerifierProcess } from '../support/site/verifier.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const VERIFIER_NAME = 'verifier.shop.example';
const GATEWAY_URI = 'spiffe://shop.example/gateway';

/** Two issuers of the same names. The third certificate is from an unknown issuer, the fourth names another client. */
let [first, second, stranger, other]: TestCertificates[] = [];
const fixture = useSite();
beforeAll(async () => {
  const make = (uri = GATEWAY_URI) => makeCertificates(VERIFIER_NAME, uri);
  [first, second, stranger, other] = await Promise.all([
    make(),
    make(),
    make(),
    make('spiffe://shop.example/x'),
  ]);
});
afterAll(async () => {
  for (const one of [first, second, stranger, other]) await one?.remove();
});

function made<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the certificates are not made yet');
  return value;
}

interface Mounted {
  readonly server: Pick<CertificateFiles, 'cert' | 'key'>;
  readonly clientCa: string;
}

/** A folder as Kubernetes mounts secrets: files are links through `..data`, which is swapped as a whole. */
async function mountSecret(content: Mounted) {
  const folder = await mkdtemp(join(fixture.site.directory, 'tls-'));
  let versions = 0;
  const swap = async ({ clientCa, server }: Mounted) => {
    versions += 1;
    const version = `..version-${versions}`;
    await mkdir(join(folder, version));
    await writeFile(join(folder, version, 'tls.crt'), server.cert);
    await writeFile(join(folder, version, 'tls.key'), server.key, { mode: 0o640 });
    await writeFile(join(folder, version, 'ca.crt'), clientCa);
    await symlink(version, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  await swap(content);
  for (const name of ['tls.crt', 'tls.key', 'ca.crt']) {
    await symlink(join('..data', name), join(folder, name));
  }
  const flags = [
    ...['--tls-cert-file', join(folder, 'tls.crt'), '--tls-key-file', join(folder, 'tls.key')],
    ...['--tls-client-ca-file', join(folder, 'ca.crt'), '--tls-client-san', GATEWAY_URI],
  ];
  return { flags, swap };
}

const bothCas = () => made(first).ca.cert + made(second).ca.cert;

/** The operator's TLS settings: this Envoy's certificate, and the CA that it trusts. */
async function gatewayTls(client: CertificateFiles): Promise<readonly ConfigEdit[]> {
  const trusted = join(await mkdtemp(join(fixture.site.directory, 'ca-')), 'ca.crt');
  await writeFile(trusted, bothCas());
  const common = [...shipped.verifierCluster, 'transport_socket', 'typed_config', 'common_tls_context'];
  const certificate = [...common, 'tls_certificates', 0];
  return [
    { path: [...certificate, 'certificate_chain', 'filename'], value: client.certPath },
    { path: [...certificate, 'private_key', 'filename'], value: client.keyPath },
    { path: [...common, 'validation_context', 'trusted_ca', 'filename'], value: trusted },
  ];
}

async function gatewayOf(
  version: string,
  verifier: VerifierProcess,
  client: CertificateFiles,
): Promise<Gateway> {
  return fixture.gateway(version, verifier, { verifierTls: true, edits: await gatewayTls(client) });
}

const readOrder = () =>
  signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), route: ROUTES.readOrder });

async function metric(verifier: VerifierProcess, name: string): Promise<number> {
  const { text } = await verifier.probe('/metrics');
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? 0);
}

const RELOADED = 'proofgate_tls_reloads_total{outcome="succeeded"}';
const NOT_RELOADED = 'proofgate_tls_reloads_total{outcome="failed"}';

/** The issuer of the verifier's certificate, or the handshake error. @param sessions gets those that a client could resume */
function shakeHands(
  verifier: VerifierProcess,
  options: ConnectionOptions,
  sessions: Buffer[] = [],
): Promise<string> {
  const { address } = verifier;
  if (address.kind !== 'tcp') throw new Error('not on TCP');
  return new Promise((resolve) => {
    const socket = connectTls({
      ...options,
      host: address.host,
      port: address.port,
      servername: VERIFIER_NAME,
      ca: bothCas(),
      ALPNProtocols: ['h2'],
    });
    socket.on('session', (session: Buffer) => sessions.push(session));
    const { ca } = made(first);
    // In TLS 1.3 a client learns only after the handshake that it was rejected; the server's first frame proves that it was
    // not.
    socket.once('data', () => {
      const raw = socket.getPeerX509Certificate();
      const isFirst = raw?.verify(new X509Certificate(ca.cert).publicKey);
      socket.destroy();
      resolve(isFirst ? 'first' : 'second');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    socket.once('close', () => resolve('closed'));
  });
}

const pair = ({ cert, key }: CertificateFiles): SecureContextOptions => ({ cert, key });

async function verifierWith(content: Mounted) {
  const { flags, swap } = await mountSecret(content);
  return { verifier: await fixture.verifier({ listen: 'tcp', flags }), swap };
}

const usual = (): Mounted => ({ server: made(first).server, clientCa: bothCas() });

describe.each(LANE_ENVOYS)('Envoy %s with the shipped TLS block', (version) => {
  it('goes on while certificates change, under load', async () => {
    const { swap, verifier } = await verifierWith(usual());
    const gateway = await gatewayOf(version, verifier, made(first).client);
    const allowed = { routeId: ROUTES.readOrder.route_id, subject: 'client:billing' };
    const client = gateway.client('HTTP/1.1');
    await expectAllowed(gateway, await observe(gateway, client, readOrder()), allowed);
    const traffic = startTraffic(async () => (await client.send(readOrder())).status);
    for (let round = 1; round <= 4; round += 1) {
      const { server } = made(round % 2 === 1 ? second : first);
      await swap({ ...usual(), server });
      await waitFor('the change to be taken', async () =>
        (await metric(verifier, RELOADED)) === round ? true : undefined,
      );
      expect(await shakeHands(verifier, pair(made(first).client))).toBe(round % 2 === 1 ? 'second' : 'first');
      await traffic.more(20);
    }
    await traffic.stop();
    expect(new Set(traffic.statuses)).toEqual(new Set([200]));
    expect(gateway.upstream.requests.length).toBeGreaterThanOrEqual(80);
  });

  it('is refused with a certificate of another CA, or of another client: nothing is forwarded', async () => {
    const { verifier } = await verifierWith(usual());
    for (const client of [made(stranger).client, made(other).client]) {
      const gateway = await gatewayOf(version, verifier, client);
      const response = await gateway.client('HTTP/1.1').send(readOrder());
      expect([response.status, gateway.upstream.requests.length]).toEqual([503, 0]);
    }
    expect(await verifier.auditEvents()).toEqual([]);
    expect(await metric(verifier, 'proofgate_grpc_refused_total{why="tls"}')).toBeGreaterThan(0);
  });

  it('whose CA is taken away has to go, with the connections that it has', async () => {
    const { swap, verifier } = await verifierWith(usual());
    const gateway = await gatewayOf(version, verifier, made(first).client);
    const client = gateway.client('HTTP/1.1');
    expect((await client.send(readOrder())).status).toBe(200);
    await swap({ server: made(first).server, clientCa: made(second).ca.cert });
    await waitFor('the gateway to be refused', async () =>
      (await client.send(readOrder())).status === 503 ? true : undefined,
    );
    gateway.upstream.clear();
    expect((await client.send(readOrder())).status).toBe(503);
    expect(gateway.upstream.requests).toEqual([]);
  });
});

/** No Envoy takes part: once is enough. */
if (!IS_EXTENDED) {
  it('only clients with a certificate that is wanted get as far as HTTP/2', async () => {
    const odd = await makeCertificates(VERIFIER_NAME, 'spiffe://shop.example/elsewhere');
    fixture.stops.push(odd.remove);
    const content = { ...usual(), clientCa: bothCas() + odd.ca.cert };
    const { verifier } = await verifierWith(content);
    expect(await shakeHands(verifier, pair(made(first).client))).toBe('first');
    expect(await shakeHands(verifier, {})).not.toMatch(/first|second/);
    expect(await shakeHands(verifier, pair(made(stranger).client))).not.toMatch(/first|second/);
    const before = await metric(verifier, 'proofgate_grpc_refused_total{why="client_name"}');
    expect(await shakeHands(verifier, pair(odd.client))).not.toMatch(/first|second/);
    expect(await metric(verifier, 'proofgate_grpc_refused_total{why="client_name"}')).toBe(before + 1);
    expect(await shakeHands(verifier, { ...pair(made(first).client), maxVersion: 'TLSv1.2' })).toBe('first');
    const old = { ...pair(made(first).client), minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as const;
    expect(await shakeHands(verifier, { ...old, ciphers: 'DEFAULT@SECLEVEL=0' })).not.toMatch(/first|second/);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'no session of %s is resumed without a certificate',
    async (version) => {
      const { verifier } = await verifierWith(usual());
      const limits = { minVersion: version, maxVersion: version };
      const sessions: Buffer[] = [];
      expect(await shakeHands(verifier, { ...pair(made(first).client), ...limits }, sessions)).toBe('first');
      expect(await shakeHands(verifier, { ...limits, session: sessions.at(-1) })).not.toMatch(/first|second/);
    },
  );

  it.each([
    ['of another certificate', () => made(first).server.key],
    [
      'of another kind',
      () => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    ],
  ])('a key %s leaves the former files in use, and is reported', async (_name, key) => {
    const { swap, verifier } = await verifierWith(usual());
    const expiry = await metric(verifier, 'proofgate_tls_certificate_expiry_timestamp_seconds');
    expect(expiry).toBeGreaterThan(Date.now() / 1000);
    const { cert } = made(second).server;
    await swap({ ...usual(), server: { cert, key: key() } });
    await waitFor('the refusal', async () =>
      (await metric(verifier, NOT_RELOADED)) === 1 ? true : undefined,
    );
    const { status, text } = await verifier.probe('/readyz');
    expect([status, JSON.parse(text).checks]).toEqual([
      200,
      expect.arrayContaining([
        expect.objectContaining({
          name: 'tls',
          ok: true,
          warning: expect.stringContaining('tls_pair_invalid'),
        }),
      ]),
    ]);
    expect(await shakeHands(verifier, pair(made(first).client))).toBe('first');
    await swap({ ...usual(), server: made(second).server });
    await waitFor('the pair that fits', async () =>
      (await metric(verifier, RELOADED)) === 1 ? true : undefined,
    );
    expect(await shakeHands(verifier, pair(made(first).client))).toBe('second');
    expect(JSON.parse((await verifier.probe('/readyz')).text).checks).toContainEqual({
      name: 'tls',
      ok: true,
    });
    expect(fixture.site.secrets.foundIn([...(await verifier.outputs()).values()].join('\n'))).toEqual([]);
  });
}
