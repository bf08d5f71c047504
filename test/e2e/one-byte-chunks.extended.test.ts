/**
 * Clients that send bodies in chunks of one byte and never end them: the memory of each server stays within what it allows, and
 * it answers others meanwhile.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import {
  chunkedHead,
  type Flood,
  HTTP1_CHUNKS,
  http2Chunks,
  http2Head,
  startFlood,
  watchWhile,
} from '../support/harness/chunk-floods.ts';
import { FLOODED, type FloodedServer, type Head, headOf } from '../support/harness/flooded-servers.ts';
import { attestedCaller } from '../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { createSite, type Site } from '../support/site/site.ts';

/** The heap grows with each garbage that is not collected yet. */
const GARBAGE_MIB = 64;
const CONNECTIONS = 500;
const BYTES_OF_CONNECTION = 130_000;
const STREAMS = 100;

let site: Site;
let server: FloodedServer;
const floods: Flood[] = [];

beforeAll(async () => {
  site = await createSite();
});
afterEach(endFloods);
afterAll(async () => {
  await site?.remove();
});

function endFloods(): void {
  for (const flood of floods.splice(0)) flood.end();
}

/** Floods again while a probe was slow: a busy machine delays one in some floods, a server that is at fault in each. */
const MOST_FLOODS = 3;
/** A half where a flood has few connections, and all where a server reads one after the other. */
const MOST_SHARE = 3 / 4;

async function withstand(name: string, start: () => Flood): Promise<void> {
  let least = 1;
  for (let flood = 0; flood < MOST_FLOODS && least >= MOST_SHARE; flood++) {
    endFloods();
    least = Math.min(least, await slowestShare(name, start()));
  }
  // A server that reads one flooding client after the other leaves one probe waiting until it has read them all.
  expect(least).toBeLessThan(MOST_SHARE);
}

/** @returns the slowest probe's share of the time of the flood */
async function slowestShare(name: string, flood: Flood): Promise<number> {
  floods.push(flood);
  const statuses = new Set<number>();
  const probe = async () => statuses.add((await server.livez()).status);
  const { allMs, grownMib, probes, slowestProbeMs } = await watchWhile(server.pid, probe, flood.sent);
  console.log(
    `${name}: ${(flood.sentBytes() / 1e6).toFixed(0)} MB sent, ${grownMib.toFixed(0)} MiB more, ${probes} probes in ` +
      `${allMs.toFixed(0)} ms, the slowest ${slowestProbeMs.toFixed(0)} ms, answers ${JSON.stringify([...(await flood.sent)])}`,
  );
  expect(grownMib).toBeLessThan(2 * server.allowedMib + GARBAGE_MIB);
  expect([...statuses]).toEqual([server.livezStatus]);
  return slowestProbeMs / allMs;
}

const http1Flood = (headOfConnection: () => Head) =>
  startFlood({
    address: server.address,
    connections: CONNECTIONS,
    head: () => {
      const head = headOfConnection();
      const { lines, method, target } = server.asSent?.(head) ?? head;
      return chunkedHead(method, target, lines);
    },
    chunks: HTTP1_CHUNKS,
    bytesOfConnection: BYTES_OF_CONNECTION,
  });

describe.each(Object.entries(FLOODED))('%s', (name, kind) => {
  beforeAll(async () => {
    server = await kind.start(site);
  });
  afterAll(async () => {
    await server?.stop();
  });

  test(`${CONNECTIONS} strangers`, async () => {
    const head = kind.head(site);
    await withstand(`${name}, strangers`, () => http1Flood(() => head));
  });

  if (!kind.hasProofs) return;
  test(`one caller with ${CONNECTIONS} proofs`, async () => {
    await withstand(`${name}, one caller`, () => http1Flood(() => headOf(site, ROUTES.createOrder, false)));
  });

  test('one caller with one proof', async () => {
    const head = headOf(site, ROUTES.createOrder, false);
    await withstand(`${name}, one proof`, () => http1Flood(() => head));
  });
});

describe('proxy over HTTP/2', () => {
  beforeAll(async () => {
    server = (await FLOODED.proxy?.start(site)) ?? server;
  });
  afterAll(async () => {
    await server?.stop();
  });

  test.each([
    ['strangers, a bound route', ROUTES.createOrder, true],
    ['strangers, an unbound route', ROUTES.upload, true],
    ['one caller with a proof for each stream', ROUTES.createOrder, false],
  ] as const)('%s', async (name, route, isStranger) => {
    const linesOf = () => {
      const { lines, method, target } = headOf(site, route, isStranger);
      const pseudo = [':method', ':scheme', ':authority', ':path'].map(
        (one, index) => [one, [method, 'http', AUTHORITY, target][index] ?? ''] as const,
      );
      const others = lines.filter(([line]) => !/^(host|transfer-encoding|content-length)$/i.test(line));
      return [...pseudo, ...others];
    };
    await withstand(`HTTP/2, ${name}`, () =>
      startFlood({
        address: server.address,
        connections: 6,
        head: () => http2Head(STREAMS, linesOf),
        chunks: http2Chunks(STREAMS),
        bytesOfConnection: 20_000_000,
      }),
    );
    // Another caller is served after it.
    const caller = attestedCaller(site);
    const { address } = server;
    if (!('port' in address)) throw new Error('the proxy listens on TCP');
    const request = signedRequest(site, { caller, route: ROUTES.createOrder, body: 'a' });
    const client = http1Client({ host: '127.0.0.1', port: address.port }, 300_000);
    expect((await client.send(request)).status).toBe(200);
  });
});
