/**
 * Kills `proofgate signer` with SIGKILL under load, again and again, and starts it on the same port: nothing unsigned reaches the
 * upstream. `PROOFGATE_TEST_SIGNER_KILLS` sets the number of kills (`make soak`).
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { pairs } from '../../../src/tools/conformance/wire/exchange.ts';
import { ORIGIN, writeBillingKey } from '../../support/caller/egress-fixture.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { proofgateCommand } from '../../support/harness/program.ts';
import { coreDecision, loadSnapshot } from '../../support/points/oracle.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';

const KILLS = Number(process.env.PROOFGATE_TEST_SIGNER_KILLS ?? 10);
const TIMEOUT_MS = 300_000 + KILLS * 20_000;
const CLIENTS = 8;
/** Successes that it gives before it is killed, and a moment more. */
const LEAST_ANSWERS = 10;
const MOST_MOMENT_MS = 40;
/** Of so many kills, one meets it while it starts. */
const START_KILL_EVERY = 4;
/** A client's pause without a signer. */
const PAUSE_MS = 20;
const BODY = Buffer.alloc(1_024, 0xfe);

let site: Site;
let folder: string;
let snapshot: Snapshot | undefined;
let upstream: Server;
let args: readonly string[];
let port: number;
beforeAll(async () => {
  site = await createSite();
  snapshot = await loadSnapshot(site, await site.makeBundle());
  folder = await mkdtemp(join(tmpdir(), 'pg-signer-kills-'));
  const key = join(folder, 'key.pem');
  await writeBillingKey(site, key);
  upstream = createServer((incoming, response) => {
    record(incoming).finally(() => response.end('ok'));
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  port = await freePort();
  const to = (upstream.address() as AddressInfo).port;
  args = [
    ...['signer', '--key', key, '--listen', `127.0.0.1:${port}`, '--admin-listen', '127.0.0.1:0'],
    ...['--upstream', ORIGIN, '--connect-to', `127.0.0.1:${to}`],
  ];
});
afterAll(async () => {
  upstream?.closeAllConnections();
  upstream?.close();
  await rm(folder, { recursive: true });
  await site?.remove();
});

/** What arrived, and how often. */
const arrived = new Map<string, number>();
const signatures = new Set<string>();
/** What the clients saw, and how often. */
const seen = new Map<string, number>();
const count = (counts: Map<string, number>, what: string) =>
  void counts.set(what, (counts.get(what) ?? 0) + 1);
const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((all, one) => all + one, 0);

/** The verifier's decision. The credentials of a request that a kill cut short must be those of the whole one. */
async function record(incoming: IncomingMessage): Promise<void> {
  const { headers, method = '', rawHeaders, url = '' } = incoming;
  const isEmpty = headers['content-length'] === '0';
  const received = await buffer(incoming).catch(() => undefined);
  const decision = coreDecision(
    'HTTP/1.1',
    {
      ...{ method, target: url, authority: headers.host ?? '', body: received ?? (isEmpty ? '' : BODY) },
      headers: pairs(rawHeaders).filter(([name]) => !/^(host|content-length)$/i.test(name)),
    },
    snapshot,
  );
  const outcome = 'detail' in decision ? `${decision.reason} ${decision.detail}` : decision.kind;
  count(arrived, received === undefined ? `${outcome}, cut short` : outcome);
  signatures.add(String(headers['x-proofgate-signature']));
}

const agent = new Agent({ keepAlive: true });

/** `200` and so on, or the code of the connection's failure. */
async function send(body: Buffer): Promise<string> {
  try {
    const outgoing = request({ agent, method: 'POST', host: '127.0.0.1', port, path: '/v1/orders' });
    outgoing.setHeader('content-length', body.length);
    const answered = once(outgoing, 'response');
    outgoing.end(body);
    const [response] = await answered;
    await buffer(response);
    return String(response.statusCode);
  } catch (error) {
    // Not `instanceof Error`: it is of another realm.
    return typeof error === 'object' && error && 'code' in error ? String(error.code) : String(error);
  }
}

async function client(isOver: () => boolean): Promise<void> {
  for (let turn = 0; !isOver(); turn += 1) {
    const outcome = await send(turn % 2 === 0 ? BODY : Buffer.alloc(0));
    count(seen, outcome);
    if (outcome !== '200') await sleep(PAUSE_MS);
  }
}

/** How long the last start took. */
let startMs = 0;

async function start(): Promise<Child> {
  const startedMs = performance.now();
  const signer = startChild(proofgateCommand(args));
  await signer.waitForLine(/"msg":"listening"/);
  startMs = performance.now() - startedMs;
  return signer;
}

async function kill(signer: Child): Promise<void> {
  signer.signal('SIGKILL');
  expect(await signer.exited).toEqual({ code: null, signal: 'SIGKILL' });
}

async function untilItAnswers(): Promise<void> {
  const successes = () => seen.get('200') ?? 0;
  const enough = successes() + LEAST_ANSWERS;
  await waitFor('answers', () => successes() >= enough);
}

async function killUnderLoad(): Promise<void> {
  const signer = await start();
  await untilItAnswers();
  await sleep(Math.random() * MOST_MOMENT_MS);
  await kill(signer);
}

async function killWhileStarting(): Promise<void> {
  const signer = startChild(proofgateCommand(args));
  await sleep(Math.random() * startMs);
  await kill(signer);
}

const BROKEN = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE'];

it(
  `nothing unsigned arrives in ${KILLS} kills`,
  async () => {
    let isOver = false;
    const clients = Array.from({ length: CLIENTS }, () => client(() => isOver));
    for (let kills = 1; kills <= KILLS; kills += 1) {
      await (kills % START_KILL_EVERY === 0 ? killWhileStarting() : killUnderLoad());
    }
    const signer = await start();
    await untilItAnswers();
    isOver = true;
    await Promise.all(clients);
    agent.destroy();
    await signer.stop();
    const figures = { kills: KILLS, arrived: Object.fromEntries(arrived), seen: Object.fromEntries(seen) };
    process.stdout.write(`kills of a signer: ${JSON.stringify(figures)}\n`);
    expect(['allowed', 'allowed, cut short']).toEqual(expect.arrayContaining([...arrived.keys()]));
    expect(signatures.size).toBe(sum(arrived));
    expect(['200', '502', ...BROKEN]).toEqual(expect.arrayContaining([...seen.keys()]));
    expect(arrived.get('allowed')).toBeGreaterThanOrEqual(seen.get('200') ?? 0);
    // Kills did meet requests.
    if (KILLS >= 10) expect(seen.get('ECONNRESET')).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);
