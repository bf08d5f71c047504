/** Tests that summaries reach Control or are dropped and counted, and that decisions never notice. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import type { CountedDecision, DecisionSummary } from '../../../src/bundle/format/decision-summary.ts';
import { parseWorkerMessage } from '../../../src/enforcement/programs/verifier/workers/worker-messages.ts';
import { deny } from '../../../src/protocol/reasons.ts';
import { ControlConnection } from '../../../src/verifier/loading/refresh/control-connection.ts';
import { SummaryPoster, type SummaryPosterOptions } from '../../../src/verifier/summaries/summary-poster.ts';
import { WorkerCounts, type WorkerReport } from '../../../src/verifier/summaries/worker-counts.ts';
import { factsOfWire, type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { waitFor } from '../../support/wait.ts';

const ALLOWED = {
  outcome: 'allowed',
  reason: undefined,
  detail: '',
  routeId: 'orders-read',
  method: 'GET',
  durationMs: 1,
} as const;

const FACTS = factsOfWire({
  ...{ method: 'GET', scheme: 'https', authority: 'api.shop.example', target: '/v1/orders/7' },
  ...{ headers: [], body: { kind: 'none' } },
});

/** Runs some minutes at once; `post` receives what each of them counted. */
async function run(minutes: number, post: SummaryPosterOptions['post']) {
  const outcomes: string[] = [];
  const waits: number[] = [];
  let left = minutes;
  const poster = new SummaryPoster({
    post,
    metrics: { posted: (outcome, decisions) => outcomes.push(`${outcome} ${decisions}`) },
    nowMs: () => 59_000,
    delayMs: 7,
    sleep: async (waitMs) => {
      waits.push(waitMs);
      if (waitMs === 7) return;
      if (left-- === 0) return new Promise(() => undefined);
      poster.add(ALLOWED);
      poster.add(ALLOWED);
    },
  });
  poster.start();
  await waitFor('the posts', () => outcomes.length === minutes);
  return { outcomes, waits };
}

describe('the poster of summaries', () => {
  it('posts a while after each minute, and counts anew', async () => {
    const posted: DecisionSummary[] = [];
    const { outcomes, waits } = await run(2, async (summary) => {
      posted.push(summary);
      return 'taken';
    });
    expect(outcomes).toEqual(['taken 2', 'taken 2']);
    expect(posted).toMatchObject([{ routes: [{ allowed: 2 }] }, { routes: [{ allowed: 2 }] }]);
    expect(waits.slice(0, 3)).toEqual([1000, 7, 1000]);
  });

  it('drops what could not be posted, and says how much with the next post that succeeds', async () => {
    const dropped: number[] = [];
    const { outcomes } = await run(4, async (summary) => {
      dropped.push(summary.dropped);
      if (dropped.length < 3) throw new Error('Control is not there');
      return 'taken';
    });
    expect(outcomes).toEqual(['failed 2', 'failed 2', 'taken 2', 'taken 2']);
    expect(dropped).toEqual([0, 2, 4, 0]);
  });

  it('adds what workers counted', async () => {
    const posted: DecisionSummary[] = [];
    const poster = new SummaryPoster({
      post: async (summary) => {
        posted.push(summary);
        return 'taken';
      },
      metrics: { posted: () => undefined },
      delayMs: 0,
      sleep: async () => {
        if (posted.length > 0) await new Promise(() => undefined);
      },
    });
    const worker = new WorkerCounts((report) => report.kind === 'counted' && poster.merge(report.summary));
    for (const counter of [worker, worker, poster]) counter.add(ALLOWED);
    worker.close();
    poster.start();
    await waitFor('the post', () => posted.length > 0);
    expect(posted).toMatchObject([{ routes: [{ allowed: 3 }] }]);
  });

  it('spreads the posts of many verifiers over twenty seconds', async () => {
    const delays: number[] = [];
    for (let verifiers = 0; verifiers < 8; verifiers++) {
      const poster = new SummaryPoster({
        post: async () => 'taken',
        metrics: { posted: () => undefined },
        nowMs: () => 0,
        sleep: async (waitMs) => {
          if (waitMs === 60_000) return;
          delays.push(waitMs);
          await new Promise(() => undefined);
        },
      });
      poster.start();
    }
    await waitFor('the delays', () => delays.length === 8);
    expect(Math.max(...delays)).toBeGreaterThan(1000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(20_000);
  });

  it('starts once, and posts nothing any more when it is closed', async () => {
    const posted: unknown[] = [];
    const waiting: (() => void)[] = [];
    const poster = new SummaryPoster({
      post: async (summary) => {
        posted.push(summary);
        return 'taken';
      },
      metrics: { posted: () => undefined },
      sleep: (_, signal) =>
        new Promise((resolve) => {
          waiting.push(resolve);
          signal.addEventListener('abort', () => resolve());
        }),
    });
    poster.start();
    poster.start();
    expect(waiting).toHaveLength(1);
    poster.add(ALLOWED);
    // The minute is over, and the post waits for its delay.
    waiting[0]?.();
    await waitFor('the delay', () => waiting.length === 2);
    await poster.close();
    for (const resolve of waiting) resolve();
    await nextTurn();
    expect(posted).toEqual([]);
  });

  it.each([
    [204, 'taken'],
    [404, 'unsupported'],
    [422, 'control_status'],
    [503, 'control_unavailable'],
  ])('takes %d of Control as %s', async (status, expected) => {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(status).end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const connection = new ControlConnection({
      url: new URL(`http://127.0.0.1:${port}`),
      readToken: async () => 'pgt_secret',
    });
    const summary = {
      ...{ routes: [], other: { allowed: 0, denied: {}, observed: {} }, methods: {}, latency: [] },
      dropped: 0,
    };
    const outcome = await connection
      .summarize(summary, new AbortController().signal)
      .catch((error: unknown) => (error instanceof Error && 'code' in error ? error.code : error));
    expect(outcome).toBe(expected);
    await connection.close();
    server.close();
  });

  it('gets what workers count after five seconds, once for all decisions of that time', () => {
    const handed: WorkerReport[] = [];
    jest.useFakeTimers({ now: 600_000 });
    try {
      const worker = new WorkerCounts((report) => handed.push(report));
      for (let seconds = 1; seconds <= 11; seconds++) {
        worker.add({ ...ALLOWED, derivedKeyId: seconds === 1 ? 'dk_1' : undefined });
        jest.advanceTimersByTime(1000);
      }
      expect(handed).toMatchObject([
        { kind: 'counted', summary: { routes: [{ allowed: 5 }] } },
        { kind: 'used', uses: [{ keyId: 'dk_1', usedAtSeconds: 600 }] },
        { kind: 'counted', summary: { routes: [{ allowed: 5 }] } },
      ]);
      worker.close();
      worker.close();
      expect(handed).toHaveLength(4);
    } finally {
      jest.useRealTimers();
    }
  });

  it('gets what workers count, all of it', () => {
    const handed: WorkerReport[] = [];
    const worker = new WorkerCounts((report) => handed.push(report));
    for (const derivedKeyId of ['dk_1', 'dk_2', 'dk_1']) worker.add({ ...ALLOWED, derivedKeyId });
    worker.close();
    expect(handed).toMatchObject([
      { kind: 'counted', summary: { routes: [{ allowed: 3 }] } },
      { kind: 'used', uses: [{ keyId: 'dk_1' }, { keyId: 'dk_2' }] },
    ]);
    // Through the channel between the processes.
    for (const report of handed)
      expect(parseWorkerMessage(JSON.parse(JSON.stringify(report)))).toEqual(report);
  });
});

it('a decision is counted with its route, method and closed detail', () => {
  const counted: object[] = [];
  const { verifier } = createTestVerifier({ onDecided: (decision) => counted.push(decision) });
  verifier.refuse(FACTS, deny('request_binding_mismatch', 'header.x-caller-chose-this'));
  expect(counted).toMatchObject([
    { outcome: 'denied', reason: 'request_binding_mismatch', detail: 'header', method: 'GET' },
  ]);
});

describe('an allowed request', () => {
  const keys = newSiteKeys();
  const used = async (plan: RequestPlan) => {
    const counted: CountedDecision[] = [];
    const snapshot = await compileSite(siteContent(keys));
    const onDecided = (decision: CountedDecision) => counted.push(decision);
    const { verifier } = createTestVerifier({ snapshot, onDecided });
    await verifier.check(signRequest(keys, plan).facts);
    return counted.map(({ derivedKeyId, outcome }) => [outcome, derivedKeyId]);
  };

  it('counts as a use of its derived key, and no other request does', async () => {
    const read = { caller: 'billing', route: 'orders-read' } as const;
    expect(await used(read)).toEqual([['allowed', KEY_ID.billing]]);
    expect(await used({ caller: 'broker', route: 'everything' })).toEqual([['allowed', undefined]]);
    expect(await used({ caller: 'reporting', route: 'orders-write' })).toEqual([['denied', undefined]]);
    expect(await used({ ...read, caller: 'revoked' })).toEqual([['denied', undefined]]);
  });
});
