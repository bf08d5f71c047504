/** The HTTP port of the real program: who may connect, its certificate, shutdown, and the setting for streamed bodies. */
import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, it } from '@jest/globals';
import {
  NoResponse,
  type WireAddress,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client, openSocket } from '../../../src/tools/conformance/wire/http1.ts';
import { capturedExplanation } from '../../support/harness/captured-denial.ts';
import { type CertificateFiles, makeCertificates } from '../../support/harness/certificates.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { startUpstream } from '../../support/harness/upstream.ts';
import { httpFlags } from '../../support/proxies/guarded-api.ts';
import { nginx, startNginx } from '../../support/proxies/nginx.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';

const fixture = useSite();
const removals: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const remove of removals.splice(0)) await remove();
});

/** As Caddy asks. */
function check(request: WireRequest): WireRequest {
  const original = [
    ['X-Forwarded-Method', request.method],
    ['X-Forwarded-Uri', request.target],
  ] as const;
  return { ...withMoreHeaders(request, original), method: 'GET', target: '/check', authority: 'verifier' };
}

const signed = (route: (typeof ROUTES)[keyof typeof ROUTES] = ROUTES.readOrder, body?: string) =>
  signedRequest(fixture.site, {
    caller: derivedKeyCaller(fixture.site),
    route,
    ...(body === undefined ? {} : { body }),
  });

async function start(flags: readonly string[]) {
  const port = await freePort();
  const verifier = await fixture.verifier({
    flags: [
      ...['--external-origin', `http://${AUTHORITY}`, '--http-profile', 'caddy', '--http-body', 'removed'],
      ...['--http-listen', `127.0.0.1:${port}`, ...flags],
    ],
  });
  return { verifier, address: { host: '127.0.0.1', port } };
}

it('--capture-denied explains what the proxy asked about', async () => {
  const directory = join(fixture.site.directory, 'denied');
  await mkdir(directory);
  const trust = ['--http-trusted-proxy', '127.0.0.0/8'];
  const { address } = await start([...trust, '--capture-denied', directory]);
  const { status } = await http1Client(address).send(check({ ...signed(), target: '/v1/orders/0' }));
  expect(status).toBe(403);
  expect(await capturedExplanation(directory)).toMatchObject({
    decision: { reason: 'request_binding_mismatch', detail: 'target' },
    recorded: { comparison: 'agrees' },
  });
});

it('closes direct connections from addresses that are not trusted, whatever they say', async () => {
  const { address, verifier } = await start([
    '--http-trusted-proxy',
    '10.0.0.0/8',
    '--http-trusted-proxy',
    'fd00::/8',
  ]);
  for (const claim of ['X-Forwarded-For', 'X-Real-IP', 'Forwarded', 'Via']) {
    const request = withMoreHeaders(check(signed()), [[claim, '10.0.0.7']]);
    await expect(http1Client(address).send(request)).rejects.toThrow(NoResponse);
  }
  const proxyProtocol = openSocket(address).resume();
  proxyProtocol.write('PROXY TCP4 10.0.0.7 10.0.0.1 1 2\r\n');
  // A reset is as good as an end.
  proxyProtocol.on('error', () => undefined);
  await new Promise((resolve) => proxyProtocol.once('close', resolve));
  expect(await verifier.auditEvents()).toEqual([]);
  expect((await verifier.probe('/metrics')).text).toContain('proofgate_http_refused_total{why="peer"} 5');
});

it('answers trusted addresses, records the decision, and says where it listens', async () => {
  const { address, verifier } = await start(['--http-trusted-proxy', '127.0.0.1/32']);
  const { headers, status } = await http1Client(address).send(check(signed()));
  const decisionId = headers.find(([name]) => name === 'x-proofgate-decision-id')?.[1] ?? '';
  expect([status, await verifier.auditEvent(decisionId)]).toMatchObject([200, { outcome: 'allowed' }]);
  expect((await verifier.outputs()).get('the log')).toContain(`"http_listen":"127.0.0.1:${address.port}"`);
  expect((await verifier.probe('/metrics')).text).toContain('proofgate_http_checks_total{status="200"} 1');
});

it('uses changed TLS files for new connections, and reports a pair that does not match', async () => {
  const make = () => makeCertificates('verifier.example', 'spiffe://shop.example/gateway');
  const [first, second] = [await make(), await make()];
  removals.push(first.remove, second.remove);
  const folder = await mkdtemp(join(fixture.site.directory, 'http-tls-'));
  const put = async (name: string, content: string) => {
    await writeFile(join(folder, `new-${name}`), content, { mode: 0o600 });
    await rename(join(folder, `new-${name}`), join(folder, name));
  };
  const mount = async ({ cert, key }: CertificateFiles) => {
    await put('tls.key', key);
    await put('tls.crt', cert);
  };
  await mount(first.server);
  await put('ca.crt', first.ca.cert);
  const file = (name: string) => join(folder, name);
  const { address, verifier } = await start([
    ...['--http-tls-cert-file', file('tls.crt'), '--http-tls-key-file', file('tls.key')],
    ...[
      '--http-tls-client-ca-file',
      file('ca.crt'),
      '--http-tls-client-san',
      'spiffe://shop.example/gateway',
    ],
  ]);
  const client = { cert: first.client.cert, key: first.client.key, rejectUnauthorized: false };
  const withTls: WireAddress = { ...address, tls: client };
  expect((await http1Client(withTls).send(check(signed()))).status).toBe(200);

  await put('tls.crt', second.server.cert);
  const isRefused = async () =>
    /http_tls[\s\S]*tls_pair_invalid/.test((await verifier.probe('/readyz')).text);
  await waitFor('the mismatch to be reported', isRefused);
  await mount(second.server);
  await waitFor('the new certificate to be used', async () =>
    (await verifier.probe('/metrics')).text.includes(
      'proofgate_http_tls_reloads_total{outcome="succeeded"} 1',
    ),
  );
  expect(await presentedBy(withTls)).toBe(new X509Certificate(second.server.cert).fingerprint256);
  expect((await http1Client(withTls).send(check(signed()))).status).toBe(200);
  expect((await verifier.probe('/readyz')).status).toBe(200);
});

function presentedBy({ host, port, tls }: WireAddress): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ ...tls, host, port }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

it('in nginx, a location that streams bodies allows only routes with `body: unbound`', async () => {
  const { flags, socketPath } = await httpFlags(nginx, await mkdtemp(join(fixture.site.directory, 'http-')));
  await fixture.verifier({ flags });
  const upstream = await startUpstream();
  removals.push(() => upstream.stop());
  const proxy = await startNginx({ socketPath, upstream, authority: AUTHORITY }, STREAMED);
  removals.push(() => proxy.stop());
  const upload = await proxy.http1.send({ ...signed(ROUTES.upload), body: 'any bytes' });
  expect([upload.status, upstream.requests.map(({ body }) => body.toString())]).toEqual([200, ['any bytes']]);
  const bound = await proxy.http1.send(signed(ROUTES.readOrder));
  expect([bound.status, upstream.requests.length]).toEqual([403, 1]);
});

/** As nginx.conf says: here every location streams. */
const STREAMED = [
  ['            if ($proofgate_has_body) { return 413; }\n', ''],
  ['            client_max_body_size 1;\n', ''],
  ['            proxy_pass_request_body off;\n            proxy_set_header Content-Length "";\n\n', '\n'],
  ['/check/all-proofs;\n', '/check/all-proofs/streamed;\n'],
] as const;
