/** Tests the audit sink in front of a scripted transport. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type AuditTransport,
  type BatchingOptions,
  BatchingSink,
  type Delivery,
} from '../../../src/verifier/audit/batching.ts';
import type { LineBatch } from '../../../src/verifier/audit/line-queue.ts';
import { waitUntil } from '../../support/wait.ts';
import { numberedEvent, RecordingObserver, readTrail, upTo } from './trail.ts';

const SELDOM_MS = 3_600_000;
const DELIVERED: Delivery = { kind: 'delivered' };

/** Answers each batch with the plan's next result, and delivers when there is none. */
class PlannedTransport implements AuditTransport {
  readonly plan: (Delivery | 'hold')[];
  /** Numbers of the events of each batch that was given, in order. */
  readonly given: (readonly number[])[] = [];
  readonly delivered: LineBatch[] = [];
  readonly signals: AbortSignal[] = [];
  reopened = 0;
  closed = 0;
  underWay = 0;
  mostUnderWay = 0;
  letGo: () => void = () => undefined;

  constructor(plan: readonly (Delivery | 'hold')[]) {
    this.plan = [...plan];
  }

  async deliver(batch: LineBatch, signal: AbortSignal): Promise<Delivery> {
    this.given.push(readTrail(batch.bytes.toString()).ids);
    this.signals.push(signal);
    this.underWay += 1;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    const answer = this.plan.shift() ?? DELIVERED;
    const delivery = answer === 'hold' ? await this.#held(signal) : answer;
    // A real transport never answers in the same turn.
    await nextTurn();
    this.underWay -= 1;
    if (delivery.kind === 'delivered') this.delivered.push(batch);
    return delivery;
  }

  #held(signal: AbortSignal): Promise<Delivery> {
    return new Promise((resolve) => {
      this.letGo = () => resolve(DELIVERED);
      signal.addEventListener('abort', () => resolve({ kind: 'failed', code: 'aborted' }));
    });
  }

  get trail() {
    return readTrail(this.delivered.map(({ bytes }) => bytes.toString()).join(''));
  }

  reopen(): void {
    this.reopened += 1;
  }

  async close(): Promise<void> {
    this.closed += 1;
  }
}

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});

function open(plan: readonly (Delivery | 'hold')[] = [], options: Partial<BatchingOptions> = {}) {
  const transport = new PlannedTransport(plan);
  const observer = new RecordingObserver();
  const sink = new BatchingSink(transport, observer, {
    maxQueueBytes: 1_000_000,
    batchBytes: 100_000,
    intervalMs: 2,
    retry: { firstMs: 1, maxMs: 2 },
    closeTimeoutMs: 5_000,
    ...options,
  });
  closes.push(() => sink.close());
  return { transport, observer, sink };
}

describe('events', () => {
  it('are carried after a while, without being asked for', async () => {
    const { transport, observer, sink } = open();
    expect(sink.record(numberedEvent(0))).toBe(true);
    expect(sink.queuedBytes).toBeGreaterThan(0);
    await waitUntil(() => observer.writtenEvents === 1);
    expect(transport.trail.ids).toEqual([0]);
    expect(sink.queuedBytes).toBe(0);
  });

  it('are carried at once when a batch is full, one batch at a time, and the rest when its time comes', async () => {
    const { transport, observer, sink } = open(['hold'], { batchBytes: 1, intervalMs: SELDOM_MS });
    for (const number of upTo(3)) sink.record(numberedEvent(number));
    await waitUntil(() => transport.given.length === 1);
    transport.letGo();
    await waitUntil(() => observer.writtenEvents === 3);
    expect(transport.given).toEqual([[0], [1], [2]]);
    expect(transport.mostUnderWay).toBe(1);
  });

  it('that do not fill a batch wait for others', async () => {
    const { transport, observer, sink } = open([], { batchBytes: 500, intervalMs: SELDOM_MS });
    for (const number of upTo(4)) sink.record(numberedEvent(number));
    await waitUntil(() => observer.writtenEvents > 0);
    const carried = transport.given.flat();
    expect(carried.length).toBeLessThan(4);
    expect(sink.queuedBytes).toBeGreaterThan(0);
    await sink.close();
    expect(transport.trail.ids).toEqual(upTo(4));
  });

  it('that find no room are refused and counted', async () => {
    const { observer, sink } = open([], { maxQueueBytes: 400, intervalMs: SELDOM_MS });
    const taken = upTo(5).filter((number) => sink.record(numberedEvent(number)));
    expect(taken.length).toBeGreaterThan(0);
    expect(observer.droppedEvents).toBe(5 - taken.length);
  });
});

describe('a transport that fails', () => {
  it('is given the same batch until it delivers, and its message is reported', async () => {
    const failed: Delivery = { kind: 'failed', code: 'http_503' };
    const { transport, observer, sink } = open([failed, { kind: 'failed', code: 'econnreset' }], {
      intervalMs: SELDOM_MS,
      batchBytes: 1,
    });
    sink.record(numberedEvent(0));
    await waitUntil(() => observer.writtenEvents === 1);
    expect(transport.given).toEqual([[0], [0], [0]]);
    expect(observer).toMatchObject({ codes: ['http_503', 'econnreset'], droppedEvents: 0 });
  });

  it('is left alone for as long as it asked', async () => {
    const later: Delivery = { kind: 'failed', code: 'http_429', retryAfterMs: 200 };
    const { transport, observer, sink } = open([later]);
    const startedMs = performance.now();
    sink.record(numberedEvent(0));
    await waitUntil(() => observer.writtenEvents === 1);
    // Half: a timer counts from the start of its loop's turn.
    expect(performance.now() - startedMs).toBeGreaterThan(100);
    expect(transport.given).toHaveLength(2);
  });

  it('may be busy, which is no failure', async () => {
    const { transport, observer, sink } = open([{ kind: 'busy', waitMs: 1 }], {
      intervalMs: SELDOM_MS,
      batchBytes: 1,
    });
    sink.record(numberedEvent(0));
    await waitUntil(() => observer.writtenEvents === 1);
    expect(transport.given).toEqual([[0], [0]]);
    expect(observer).toMatchObject({ codes: [], droppedEvents: 0 });
  });

  it('that refuses a batch loses that one alone, and the trail tells of it', async () => {
    const { transport, observer, sink } = open([{ kind: 'refused', code: 'http_400' }], { batchBytes: 1 });
    for (const number of upTo(3)) sink.record(numberedEvent(number));
    await waitUntil(() => observer.writtenEvents === 2);
    await sink.close();
    expect(transport.trail).toEqual({ ids: [1, 2], gaps: [1], torn: [] });
    expect(observer).toMatchObject({ codes: ['http_400'], droppedEvents: 1 });
  });

  it('that finds a batch too large is given halves, down to one line, which is lost', async () => {
    const tooLarge: Delivery = { kind: 'too_large', code: 'http_413' };
    const { transport, observer, sink } = open([tooLarge, tooLarge], { intervalMs: SELDOM_MS });
    for (const number of upTo(2)) sink.record(numberedEvent(number));
    await sink.close();
    expect(transport.given).toEqual([[0, 1], [0], [1], []]);
    expect(transport.trail).toEqual({ ids: [1], gaps: [1], torn: [] });
    expect(observer).toMatchObject({ codes: ['http_413', 'http_413'], droppedEvents: 1, writtenEvents: 1 });
  });
});

describe('the end', () => {
  it('carries what waits, then takes nothing more', async () => {
    const { transport, observer, sink } = open([], { intervalMs: SELDOM_MS });
    for (const number of upTo(3)) sink.record(numberedEvent(number));
    await sink.close();
    expect(transport.trail.ids).toEqual(upTo(3));
    expect(sink.record(numberedEvent(3))).toBe(false);
    expect(observer).toMatchObject({ writtenEvents: 3, droppedEvents: 1 });
    expect(transport.closed).toBe(1);
  });

  it('takes nothing as soon as it has begun, and comes once', async () => {
    const { transport, sink } = open(['hold'], { intervalMs: SELDOM_MS });
    sink.record(numberedEvent(0));
    const ends = [sink.close(), sink.close()];
    expect(sink.record(numberedEvent(1))).toBe(false);
    await waitUntil(() => transport.given.length === 1);
    expect(transport.closed).toBe(0);
    transport.letGo();
    await Promise.all(ends);
    expect(transport.closed).toBe(1);
    expect(transport.trail.ids).toEqual([0]);
  });

  it('waits for what a transport asked for, and tries again', async () => {
    const later: Delivery = { kind: 'failed', code: 'http_503', retryAfterMs: 50 };
    const { transport, observer, sink } = open([later, later], { intervalMs: SELDOM_MS });
    sink.record(numberedEvent(0));
    const startedMs = performance.now();
    await sink.close();
    // Half: a timer counts from the start of its loop's turn.
    expect(performance.now() - startedMs).toBeGreaterThan(50);
    expect(transport.given).toHaveLength(3);
    expect(observer).toMatchObject({ writtenEvents: 1, droppedEvents: 0 });
  });

  it.each<[string, Delivery | 'hold']>([
    ['hangs', 'hold'],
    ['asks for more time than there is', { kind: 'failed', code: 'http_503', retryAfterMs: SELDOM_MS }],
  ])('comes in its time although the transport %s, and counts what that costs', async (_what, answer) => {
    const { transport, observer, sink } = open([answer, answer], {
      intervalMs: SELDOM_MS,
      batchBytes: 1,
      closeTimeoutMs: 100,
    });
    for (const number of upTo(3)) sink.record(numberedEvent(number));
    await sink.close();
    expect(observer).toMatchObject({ writtenEvents: 0, droppedEvents: 3 });
    expect(transport.signals[0]?.aborted).toBe(true);
    expect(transport.closed).toBe(1);
    expect(sink.queuedBytes).toBe(0);
  });

  it('does not abort what is delivered in time', async () => {
    const { transport, sink } = open([], { closeTimeoutMs: 50 });
    sink.record(numberedEvent(0));
    await sink.close();
    await new Promise((resolve) => {
      setTimeout(resolve, 80);
    });
    expect(transport.signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});

it('is reopened by its transport', () => {
  const { transport, sink } = open();
  sink.reopen();
  expect(transport.reopened).toBe(1);
});
