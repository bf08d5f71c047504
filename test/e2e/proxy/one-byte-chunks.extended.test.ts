/** Memory of `proofgate proxy` while clients send bodies in chunks of one byte and never end them. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { http1Client } from '../../../src/conformance/wire/http1.ts';
import { requestLines } from '../../../src/conformance/wire/http2.ts';
import { attestedCaller, derivedKeyCaller } from '../environment/callers.ts';
import { ROUTES, type SiteRoute } from '../environment/routes.ts';
import { signedRequest } from '../environment/signed-request.ts';
import { createSite, type Site } from '../environment/site.ts';
import {
  chunkedHead,
  type Flood,
  HTTP1_CHUNKS,
  http2Chunks,
  http2Head,
  startFlood,
  watchWhile,
} from '../harness/chunk-floods.ts';
import { httpGet } from '../harness/wait.ts';
import { type ProxiedUpstream, startRecordedProxy } from './proxy-fixture.ts';

/** For 1,000 requests in progress: their bodies have at most 62.5 MiB. */
const MAX_REQUESTS = 1_000;
const ALLOWED_MIB = (MAX_REQUESTS * 65_536) / 1_048_576;
/** The heap grows with each garbage that is not collected yet. */
const GARBAGE_MIB = 64;
const STREAMS = 100;

let site: Site;
let proxy: ProxiedUpstream;
const floods: Flood[] = [];

beforeAll(async () => {
  site = await createSite();
  proxy = await startRecordedProxy(site, { flags: ['--max-requests', String(MAX_REQUESTS)] });
});
afterEach(() => {
  for (const flood of floods.splice(0)) flood.end();
});
afterAll(async () => {
  await proxy?.stop();
  await site?.remove();
});

const sign = (route: SiteRoute, caller = derivedKeyCaller(site)) =>
  signedRequest(site, { caller, route, body: 'a', framing: 'open' });

/** The lines of a signed request; without a proof for a stranger. */
function linesOf(route: SiteRoute, isStranger: boolean): readonly (readonly [string, string])[] {
  const lines = requestLines(sign(route));
  return isStranger ? lines.filter(([name]) => !/^(authorization|x-proofgate-)/i.test(name)) : lines;
}

const http1Flood = (route: SiteRoute, isStranger: boolean, isOneProof = false) => {
  const once = linesOf(route, isStranger);
  return startFlood({
    address: proxy.address,
    connections: 500,
    head: () => {
      const lines = isOneProof || isStranger ? once : linesOf(route, isStranger);
      const [method = '', target = ''] = [':method', ':path'].map((name) => new Map(lines).get(name));
      const others = lines.filter(([name]) => !name.startsWith(':'));
      return chunkedHead(method, target, [['Host', new Map(lines).get(':authority') ?? ''], ...others]);
    },
    chunks: HTTP1_CHUNKS,
    bytesOfConnection: 390_000,
  });
};

const http2Flood = (route: SiteRoute, isStranger: boolean) =>
  startFlood({
    address: proxy.address,
    connections: 6,
    head: () => http2Head(STREAMS, linesOf(route, isStranger)),
    chunks: http2Chunks(STREAMS),
    bytesOfConnection: 20_000_000,
  });

test.each([
  ['HTTP/1.1, strangers, a bound route', () => http1Flood(ROUTES.createOrder, true)],
  ['HTTP/1.1, strangers, an unbound route', () => http1Flood(ROUTES.upload, true)],
  ['HTTP/1.1, one caller with 500 proofs', () => http1Flood(ROUTES.createOrder, false)],
  ['HTTP/1.1, one caller with one proof', () => http1Flood(ROUTES.createOrder, false, true)],
  ['HTTP/2, strangers, a bound route', () => http2Flood(ROUTES.createOrder, true)],
  ['HTTP/2, strangers, an unbound route', () => http2Flood(ROUTES.upload, true)],
  ['HTTP/2, one caller with one proof', () => http2Flood(ROUTES.createOrder, false)],
])(
  '%s',
  async (name, start) => {
    const flood = start();
    floods.push(flood);
    const { process } = proxy;
    const livez = () => httpGet(process.livezUrl, 120_000);
    const { grownMib, probes, slowestProbeMs } = await watchWhile(process.pid, livez, flood.sent);
    const answers = JSON.stringify([...(await flood.sent)]);
    console.log(
      `${name}: ${(flood.sentBytes() / 1e6).toFixed(0)} MB sent, ${grownMib.toFixed(0)} MiB more, ` +
        `${probes} probes, the slowest ${slowestProbeMs.toFixed(0)} ms, answers ${answers}`,
    );
    expect(grownMib).toBeLessThan(2 * ALLOWED_MIB + GARBAGE_MIB);
    expect(probes).toBeGreaterThan(0);
    // Another caller is served meanwhile.
    expect(
      (await http1Client(proxy.address, 60_000).send(sign(ROUTES.createOrder, attestedCaller(site)))).status,
    ).toBe(200);
    expect((await livez()).status).toBe(200);
  },
  300_000,
);
