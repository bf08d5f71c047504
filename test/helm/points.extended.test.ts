/** Runs the HTTP port and the reverse proxy as the chart renders them, each with a signed request and one without a proof. */
import { once } from 'node:events';
import { cp, readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { type RequestOptions, request as requestOverTls } from 'node:https';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { containersOf, describeChart, podsOf, render } from '../support/chart/chart.ts';
import {
  makePodFolder,
  type PodFolder,
  type StartedContainer,
  startContainer,
} from '../support/chart/pod-process.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { TestRedisServer } from '../support/harness/redis-server.ts';
import { startUpstream, type Upstream } from '../support/harness/upstream.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { AUTH_SITE, createSite, type Site } from '../support/site/site.ts';
import { httpGet } from '../support/wait.ts';

const SERVER_NAME = 'rel-proofgate.gateway.svc';
const NGINX_SECRET = 'An-nginx-secret-of-32-characters';
const SETTINGS = { externalOrigin: `http://${AUTHORITY}` };

let certificates: TestCertificates;
let site: Site;
let api: Upstream;
let pod: PodFolder;
const ended: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  certificates = await makeCertificates(SERVER_NAME, 'spiffe://shop.example/nginx');
  site = await createSite();
  api = await startUpstream();
});
afterAll(async () => {
  await Promise.all([certificates.remove(), site.remove(), api.stop()]);
});
beforeEach(async () => {
  pod = await makePodFolder(['/var/lib/proofgate', '/var/spool/proofgate', '/run/proofgate']);
  await cp(await site.makeBundle(), pod.at('/etc/proofgate/bundle'), { recursive: true });
  api.clear();
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
  await pod.remove();
});

/** Starts the only container of the pod, with the bundle of the site from a volume and a Redis of its own. */
async function start(file: string, component: string, values: object): Promise<StartedContainer> {
  const bundleKeys = { 'bundle-1.jwk.json': await readFile(site.bundleKeyFile, 'utf8') };
  const also = {
    control: { enabled: false },
    [component]: {
      authSite: AUTH_SITE,
      source: { control: { url: '' }, volume: { emptyDir: {} } },
      trust: { existingConfigMap: '', bundleKeyFiles: [], bundleKeys },
      settings: SETTINGS,
      ...values,
    },
  };
  await pod.put('/etc/proofgate/trust/bundle-1.jwk.json', bundleKeys['bundle-1.jwk.json'], 0o644);
  const [container] = podsOf(render({ file, also })).flatMap(({ spec }) => containersOf(spec));
  if (container === undefined) throw new Error(`${file} has no container`);
  const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  ended.push(() => redis.stop());
  const hasReplay = container.args.some((arg) => arg.startsWith('--replay='));
  const point = await startContainer(container, pod, hasReplay ? {} : { PROOFGATE_REPLAY: redis.url });
  ended.push(() => point.service.stop());
  return point;
}

const portOf = (address: string) => Number(address.split(':')[1]);

async function putTls(prefix: string): Promise<void> {
  await pod.put(`/etc/proofgate/${prefix}tls/tls.crt`, certificates.server.cert);
  await pod.put(`/etc/proofgate/${prefix}tls/tls.key`, certificates.server.key);
}

function withCertificate(port: number): RequestOptions {
  const { ca, client } = certificates;
  return { ...withoutCertificate(port), ca: ca.cert, cert: client.cert, key: client.key };
}

function withoutCertificate(port: number): RequestOptions {
  return { host: '127.0.0.1', port, servername: SERVER_NAME, ca: certificates.ca.cert };
}

const signed = (): WireRequest =>
  signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.readOrder });

async function answerTo(
  to: RequestOptions,
  path: string,
  headers: readonly HeaderLine[],
): Promise<IncomingMessage> {
  const send = to.servername === undefined ? request : requestOverTls;
  const sent = send({ ...to, path, headers: headers.flat(), agent: false }).end();
  const [answer]: IncomingMessage[] = await once(sent, 'response');
  if (answer === undefined) throw new Error('no answer');
  return answer.resume();
}

/** Status and subject for the check that deploy/nginx/nginx.conf makes of a request. */
async function askAsNginx(to: RequestOptions, { method, target, headers = [] } = signed()) {
  const checked: readonly HeaderLine[] = [
    ['x-proofgate-request', `${NGINX_SECRET} ${method} ${target}`],
    ...headers,
  ];
  const answer = await answerTo(to, '/check', [['host', AUTHORITY], ...checked]);
  return { status: answer.statusCode, subject: answer.headers['x-proofgate-subject'] };
}

describeChart('as the chart starts it', () => {
  it('the HTTP port answers nginx, which has a certificate and the secret', async () => {
    await putTls('');
    await putTls('http-');
    await pod.put('/etc/proofgate/http-client-ca/ca.crt', certificates.ca.cert);
    await pod.put('/etc/proofgate/http-secret/secret', NGINX_SECRET);
    const { address } = await start('verifier-http-nginx', 'verifier', {});
    expect((await httpGet(`http://${address(9192)}/readyz`)).text).toContain('"http_tls"');
    const port = portOf(address(9195));
    expect(await askAsNginx(withCertificate(port))).toEqual({ status: 200, subject: 'client:billing' });
    const unsigned = await askAsNginx(withCertificate(port), { ...signed(), headers: [] });
    expect(unsigned).toEqual({ status: 401, subject: undefined });
    await expect(askAsNginx(withoutCertificate(port))).rejects.toThrow();
  });

  it('a sidecar answers nginx on a second socket, with a Secret that every user of the pod can read', async () => {
    await pod.put('/etc/proofgate/http-secret/secret', NGINX_SECRET, 0o444);
    await start('sidecar-http', 'verifier', {});
    const asked = await askAsNginx({ socketPath: pod.at('/run/proofgate/http.sock') });
    expect(asked).toEqual({ status: 200, subject: 'client:billing' });
  });

  it('a sidecar answers Caddy on loopback', async () => {
    const { address } = await start('sidecar-http-loopback', 'verifier', { http: { body: 'removed' } });
    const { headers = [], method, target } = signed();
    const original: readonly HeaderLine[] = [
      ['x-forwarded-method', method],
      ['x-forwarded-uri', target],
    ];
    const to = { host: '127.0.0.1', port: portOf(address(9195)) };
    const { statusCode } = await answerTo(to, '/check', [['host', AUTHORITY], ...original, ...headers]);
    expect(statusCode).toBe(200);
  });

  it('a proxy without TLS forwards what is signed, with a body that needs its volume, and nothing else', async () => {
    const upstream = { url: `http://${api.host}:${api.port}` };
    const { address } = await start('proxy-memory', 'proxy', { upstream });
    const proxy = http1Client({ host: '127.0.0.1', port: portOf(address(8443)) });
    const body = Buffer.alloc(300_000, 'x');
    const plan = { caller: derivedKeyCaller(site), route: ROUTES.createOrder, body };
    expect((await proxy.send(signedRequest(site, plan))).status).toBe(200);
    expect(api.requests.at(-1)?.body).toEqual(body);
    expect(headerValues(api.requests.at(-1)?.headers ?? [], 'x-proofgate-subject')).toEqual([
      'client:billing',
    ]);
    api.clear();
    expect((await proxy.send({ ...signedRequest(site, plan), headers: [] })).status).toBe(401);
    expect(api.requests).toEqual([]);
  });

  it('a proxy with TLS on both sides takes only clients with a certificate', async () => {
    await putTls('');
    await putTls('upstream-');
    await pod.put('/etc/proofgate/client-ca/ca.crt', certificates.ca.cert);
    await pod.put('/etc/proofgate/upstream-ca/ca.crt', certificates.ca.cert);
    const { address } = await start('proxy', 'proxy', {});
    const port = portOf(address(8443));
    const host: HeaderLine = ['host', AUTHORITY];
    expect((await answerTo(withCertificate(port), '/v1/orders/7', [host])).statusCode).toBe(401);
    await expect(answerTo(withoutCertificate(port), '/v1/orders/7', [host])).rejects.toThrow();
  });
});
