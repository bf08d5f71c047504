/**
 * `proofgate proxy` under hostile load: memory stays flat, nothing leaks, and good requests are answered.
 * `PROOFGATE_TEST_LOAD_SECONDS` sets how long each load lasts.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { contentSha256 } from '../../../src/protocol/body-binding.ts';
import { encodeHttp1, http1Client, sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { attestedCaller, derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { type RequestPlan, sign as signAnew } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningProxy, startProxy } from './proxy-fixture.ts';

const SECONDS = Number(process.env.PROOFGATE_TEST_LOAD_SECONDS ?? 10);
/** Good requests: the load goes on until it has let so many through, however slow the machine is. */
const LEAST_SERVED = 10;
const MIB = 1_048_576;

let site: Site;
let proxy: RunningProxy;
let upstream: ReturnType<typeof createServer>;

beforeAll(async () => {
  site = await createSite();
  let count = 0;
  // Reads everything; each third request that asks for it is broken off in the middle of its response.
  upstream = createServer((request, response) => {
    request.resume().on('error', () => undefined);
    request.on('end', () => {
      count += 1;
      const breaksOff = request.url?.includes('break') === true && count % 3 === 0;
      response.writeHead(200, { 'content-length': 200_000 });
      response.write(Buffer.alloc(100_000));
      if (breaksOff) request.socket.destroy();
      else response.end(Buffer.alloc(100_000));
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  proxy = await startProxy(site, {
    upstream: `http://127.0.0.1:${port}`,
    audit: 'best_effort_stdout',
    env: { NODE_OPTIONS: `--import=${import.meta.dirname}/collect-garbage-on-signal.mjs` },
    flags: ['--max-connections', '5000', '--max-body', String(10 * MIB)],
  });
});

afterAll(async () => {
  await proxy?.stop();
  upstream?.closeAllConnections();
  upstream?.close();
  await site?.remove();
});

const PASSPORT_USE_MS = 200_000;
const passports = new Map<string, { readonly jws: string; readonly untilMs: number }>();

/** With a passport in use, as callers do: the verifier remembers up to 20,000 others, which would look like a leak. */
function sign(plan: Omit<RequestPlan, 'caller'>) {
  const caller = derivedKeyCaller(site);
  const { audience } = plan.route;
  let passport = passports.get(audience);
  if (passport === undefined || performance.now() > passport.untilMs) {
    const { passport: jws } = signAnew(site, { caller, ...plan });
    passport = { jws, untilMs: performance.now() + PASSPORT_USE_MS };
    passports.set(audience, passport);
  }
  return signAnew(site, { caller: { ...caller, passportKey: passport.jws }, ...plan }).request;
}

const residentMib = () => {
  const status = readFileSync(`/proc/${proxy.process.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
};
const openFiles = () => readdirSync(`/proc/${proxy.process.pid}/fd`).length;
const metric = async (name: string) => {
  const { text } = await proxy.process.probe('/metrics');
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
};

/** MiB of heap and buffers in use after a collection. */
async function usedMib(): Promise<number> {
  const collections = () => metric('nodejs_gc_duration_seconds_count{kind="major"}');
  const before = await collections();
  proxy.process.signal('SIGUSR2');
  await waitFor('a collection', async () => (await collections()) > before);
  const bytes =
    (await metric('nodejs_heap_size_used_bytes')) + (await metric('nodejs_external_memory_bytes'));
  return bytes / MIB;
}

function dial(): Socket {
  return connect(proxy.address).on('error', () => undefined);
}

/** Waits until nothing of the load is left. */
async function settled(): Promise<void> {
  await waitFor('no request in flight', async () => {
    return (await metric('proofgate_proxy_requests_in_flight')) === 0;
  });
  await waitFor('no client', async () => (await metric('proofgate_proxy_connections')) === 0);
  await waitFor('nothing on disk', async () => (await metric('proofgate_proxy_spooled_bytes')) === 0);
}

test('500 slow clients of one caller with bodies of 10 MiB: each takes 64 KiB of memory at most', async () => {
  const body = Buffer.alloc(10 * MIB, 'x');
  const caller = attestedCaller(site);
  const good = () =>
    http1Client(proxy.address, 60_000).send(
      signAnew(site, { caller, route: ROUTES.createOrder, body }).request,
    );
  for (let count = 0; count < 4; count += 1) expect((await good()).status).toBe(200);
  const before = residentMib();
  // Each with a proof of its own, and fewer than a quarter of the 2,048 that may be in progress.
  const sha256 = contentSha256('POST', 'bound', body);
  const slow = Array.from({ length: 500 }, dial);
  for (const socket of slow) socket.write(headOfBody(body.length, sha256));
  let at = 0;
  for (const untilBytes of [20_000, 80_000, 400_000]) {
    for (const socket of slow) socket.write(body.subarray(at, untilBytes));
    at = untilBytes;
    await sleep(2_000);
  }
  await waitFor('their bodies on disk', async () => {
    return (await metric('proofgate_proxy_spooled_bytes')) > 100_000_000;
  });
  expect((await good()).status).toBe(200);
  const grown = residentMib() - before;
  console.log(`500 slow clients: ${before.toFixed(0)} MiB and ${grown.toFixed(0)} MiB more`);
  expect(grown).toBeLessThan(200);
  for (const socket of slow) socket.destroy();
  await settled();
});

/** A signed request as far as its body, which is announced. */
function headOfBody(length: number, sha256: string): Buffer {
  return encodeHttp1(
    sign({
      route: ROUTES.createOrder,
      transcript: { contentSha256: sha256 },
      otherHeaders: [['Content-Length', `${length}`]],
    }),
  );
}

/** Each repeats until the time is over. */
const HOSTILE: { readonly [name: string]: () => Promise<unknown> } = {
  slowloris: async () => {
    const socket = dial();
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n');
    for (let count = 0; count < 5; count += 1) {
      await sleep(300);
      socket.write('X-A: b\r\n');
    }
    socket.destroy();
  },
  'header flood': () =>
    sendBytes(
      proxy.address,
      Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(90_000)}\r\n\r\n`),
      'GET',
    ).catch(() => undefined),
  'client that leaves in its body': async () => {
    const socket = dial();
    const request = sign({ route: ROUTES.createOrder, body: Buffer.alloc(300_000) });
    socket.write(encodeHttp1(request).subarray(0, 200_000));
    await sleep(30);
    socket.resetAndDestroy();
  },
  'client that leaves in an unbound body': async () => {
    const socket = dial();
    socket.write(
      encodeHttp1(sign({ route: ROUTES.upload, body: Buffer.alloc(300_000) })).subarray(0, 200_000),
    );
    await sleep(30);
    socket.resetAndDestroy();
  },
  'client that leaves in its response': async () => {
    const socket = dial().pause();
    socket.write(encodeHttp1(sign({ route: ROUTES.readOrder })));
    await sleep(30);
    socket.resetAndDestroy();
  },
  'upstream that resets': () =>
    http1Client(proxy.address)
      .send(sign({ route: ROUTES.readOrder, target: '/v1/orders/break' }))
      .catch(() => undefined),
  garbage: () => sendBytes(proxy.address, Buffer.from('\0\r\n\r\n'), 'GET').catch(() => undefined),
};

test(
  `${SECONDS} s of slow, flooding and leaving clients and a resetting upstream: nothing leaks`,
  async () => {
    await settled();
    const untilMs = performance.now() + SECONDS * 1000;
    let served = 0;
    const isOver = () => performance.now() > untilMs && served > LEAST_SERVED;
    const repeat = async (act: () => Promise<unknown>) => {
      while (!isOver()) await act();
    };
    // The pause leaves some of a slow machine to good requests.
    const hostile = (act: () => Promise<unknown>) => repeat(() => act().then(() => sleep(20)));
    const runs = Object.values(HOSTILE).flatMap((act) => [hostile(act), hostile(act)]);
    runs.push(
      repeat(async () => {
        const response = await http1Client(proxy.address).send(sign({ route: ROUTES.readOrder }));
        expect(response.status).toBe(200);
        served += 1;
        await sleep(5);
      }),
    );
    // In the first half compiled code and the table of used proofs grow.
    await sleep((SECONDS * 1000) / 2);
    const before = await usedMib();
    await Promise.all(runs);
    await settled();
    const after = await usedMib();
    const resident = residentMib();
    console.log(
      `${served} good requests; MiB in use: ${before.toFixed(0)}, then ${after.toFixed(0)}; resident ${resident.toFixed(0)}`,
    );
    expect(after).toBeLessThan(before + 16);
    // What waits for its collection comes on top.
    expect(resident).toBeLessThan(512);
    // Connections to the upstream stay open for some seconds.
    await waitFor('the files of an idle process', () => openFiles() < 60);
  },
  (SECONDS + 300) * 1000,
);
