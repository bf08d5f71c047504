/** Batches to a collector that works, fails, is silent, moves, and comes back. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { BatchingSink } from '../../../src/verifier/audit/batching.ts';
import { HttpTransport, type HttpTransportOptions } from '../../../src/verifier/audit/http-transport.ts';
import {
  type AuditCollector,
  type CollectedBatch,
  type CollectorAnswer,
  startAuditCollector,
} from '../../support/fakes/audit-collector.ts';
import { makeCertificates } from '../../support/harness/certificates.ts';
import { waitUntil } from '../../support/wait.ts';
import { numberedEvent, RecordingObserver, readTrail, upTo, wholeIds } from './trail.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function newCollector(...tls: Parameters<typeof startAuditCollector>): Promise<AuditCollector> {
  const collector = await startAuditCollector(...tls);
  stops.push(collector.stop);
  return collector;
}

interface OpenOptions extends Partial<HttpTransportOptions> {
  readonly maxQueueBytes?: number;
  readonly batchBytes?: number;
  readonly closeTimeoutMs?: number;
}

/** Opens a sink as production does, except for the times. */
function open(url: string, options: OpenOptions = {}) {
  const { batchBytes = 2000, closeTimeoutMs = 5000, maxQueueBytes = 1_000_000, ...others } = options;
  const observer = new RecordingObserver();
  const transport = new HttpTransport({
    url: new URL(url),
    readToken: undefined,
    certificateAuthorities: undefined,
    gzip: false,
    timeoutMs: 1000,
    ...others,
  });
  const sink = new BatchingSink(transport, observer, {
    maxQueueBytes,
    batchBytes,
    intervalMs: 20,
    retry: { firstMs: 5, maxMs: 20 },
    closeTimeoutMs,
  });
  stops.push(() => sink.close());
  return { observer, sink };
}

const textOf = (batches: readonly CollectedBatch[]) => batches.map(({ text }) => text).join('');

describe('a collector that works', () => {
  it.each([false, true])('gets every event in order, in batches of whole lines (gzip: %s)', async (gzip) => {
    const collector = await newCollector();
    const { observer, sink } = open(collector.url, { gzip });
    for (const number of upTo(1000)) expect(sink.record(numberedEvent(number))).toBe(true);
    await sink.close();
    expect(wholeIds(textOf(collector.taken))).toEqual(upTo(1000));
    expect(collector.taken.length).toBeGreaterThan(50);
    expect(collector.taken.length).toBeLessThan(200);
    for (const { headers, method, path, text } of collector.taken) {
      expect([method, path, headers['content-type']]).toEqual(['POST', '/ingest', 'application/x-ndjson']);
      expect(headers['content-encoding']).toBe(gzip ? 'gzip' : undefined);
      expect(headers.authorization).toBeUndefined();
      expect(text.endsWith('\n')).toBe(true);
      expect(text.length).toBeLessThanOrEqual(2000);
    }
    if (gzip) expect(collector.taken[0]?.bytesOnTheWire).toBeLessThan(1000);
    expect(observer).toMatchObject({ writtenEvents: 1000, droppedEvents: 0, codes: [] });
  });

  it('gets a single event without being asked', async () => {
    const collector = await newCollector();
    const { sink } = open(collector.url);
    sink.record(numberedEvent(1));
    await waitUntil(() => collector.taken.length === 1);
    expect(wholeIds(textOf(collector.taken))).toEqual([1]);
  });

  it('gets the token of that moment, and nothing while there is none', async () => {
    const collector = await newCollector();
    const tokens = ['first', undefined, undefined, 'second', 'second'];
    const { observer, sink } = open(collector.url, { readToken: async () => tokens.shift() });
    sink.record(numberedEvent(1));
    await waitUntil(() => collector.taken.length === 1);
    sink.record(numberedEvent(2));
    await waitUntil(() => collector.taken.length === 2);
    expect(collector.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer second',
    ]);
    expect(observer.codes).toEqual(['token_unusable', 'token_unusable']);
    expect(wholeIds(textOf(collector.taken))).toEqual([1, 2]);
  });
});

describe('over TLS', () => {
  it('goes to a collector that the certificates vouch for, and to no other', async () => {
    const certificates = await makeCertificates('collector.test', 'spiffe://example.test/x', ['127.0.0.1']);
    stops.push(() => certificates.remove());
    const collector = await newCollector(certificates.server);
    const trusting = open(collector.url, { certificateAuthorities: certificates.ca.cert });
    const other = open(collector.url, { closeTimeoutMs: 200 });
    trusting.sink.record(numberedEvent(1));
    await trusting.sink.close();
    expect(trusting.observer.codes).toEqual([]);
    expect(wholeIds(textOf(collector.taken))).toEqual([1]);
    other.sink.record(numberedEvent(2));
    await waitUntil(() => other.observer.codes.length > 0);
    await other.sink.close();
    expect(other.observer).toMatchObject({ writtenEvents: 0, droppedEvents: 1 });
    expect(collector.received).toHaveLength(1);
  });
});

/** Answers of a collector that fails for a while, and the code that the sink reports. */
const PASSING: readonly (readonly [string, CollectorAnswer, string])[] = [
  ['429', { status: 429 }, 'http_429'],
  ['500', { status: 500 }, 'http_500'],
  ['503', { status: 503, headers: { 'retry-after': '0' } }, 'http_503'],
  ['401, its token being rotated', { status: 401 }, 'http_401'],
  ['404', { status: 404 }, 'http_404'],
  ['a broken connection', 'break', 'und_err_socket'],
  ['nothing', 'silence', 'timeout'],
];

describe('a collector that answers', () => {
  it.each(PASSING)('%s for a while gets every event in the end', async (_what, answer, code) => {
    const collector = await newCollector();
    let failuresLeft = 2;
    collector.behave(() => (failuresLeft-- > 0 ? answer : { status: 200 }));
    const { observer, sink } = open(collector.url, { timeoutMs: 300 });
    for (const number of upTo(100)) sink.record(numberedEvent(number));
    await waitUntil(() => sink.queuedBytes === 0);
    expect(wholeIds(textOf(collector.taken))).toEqual(upTo(100));
    expect(observer).toMatchObject({ writtenEvents: 100, droppedEvents: 0, codes: [code, code] });
  });

  it('a redirect is not followed', async () => {
    const [collector, elsewhere] = [await newCollector(), await newCollector()];
    collector.behave({ status: 307, headers: { location: elsewhere.url } });
    const { observer, sink } = open(collector.url, { closeTimeoutMs: 100 });
    sink.record(numberedEvent(1));
    await waitUntil(() => observer.codes.length > 2);
    await sink.close();
    // The one that was under way when the sink was closed may have been given up.
    const codes = observer.codes.filter((code) => code !== 'aborted');
    expect(new Set(codes)).toEqual(new Set(['http_307']));
    expect(elsewhere.received).toEqual([]);
    expect(observer.droppedEvents).toBe(1);
  });

  it.each([400, 415, 422])('%d loses that batch alone, and the next tells of it', async (status) => {
    const collector = await newCollector();
    collector.behave(({ text }) => ({ status: text.includes('"decision_id":"5"') ? status : 200 }));
    const { observer, sink } = open(collector.url);
    for (const number of upTo(100)) sink.record(numberedEvent(number));
    await waitUntil(() => sink.queuedBytes === 0);
    sink.record(numberedEvent(100));
    await sink.close();
    const { gaps, ids } = readTrail(textOf(collector.taken));
    expect(observer.codes).toEqual([`http_${status}`]);
    expect(observer.droppedEvents).toBeGreaterThan(1);
    expect(gaps).toEqual([observer.droppedEvents]);
    expect(ids).toHaveLength(101 - observer.droppedEvents);
    expect(ids).not.toContain(5);
    expect(ids).toContain(100);
  });

  it('413 gets halves, down to the one line that is too large', async () => {
    const collector = await newCollector();
    collector.behave(({ text }) => ({ status: text.length > 700 ? 413 : 200 }));
    const { observer, sink } = open(collector.url, { batchBytes: 10_000 });
    for (const number of upTo(60)) {
      sink.record(numberedEvent(number, number === 30 ? 'x'.repeat(800) : undefined));
    }
    await waitUntil(() => sink.queuedBytes === 0);
    await sink.close();
    const { gaps, ids, torn } = readTrail(textOf(collector.taken));
    expect([torn, gaps]).toEqual([[], [1]]);
    expect(ids).toEqual(upTo(60).filter((number) => number !== 30));
    expect(observer).toMatchObject({ writtenEvents: 59, droppedEvents: 1 });
  });

  it('Retry-After is waited for', async () => {
    const collector = await newCollector();
    const arrivedMs: number[] = [];
    collector.behave(() => {
      arrivedMs.push(performance.now());
      return arrivedMs.length === 1 ? { status: 503, headers: { 'retry-after': '1' } } : { status: 200 };
    });
    const { sink } = open(collector.url);
    sink.record(numberedEvent(1));
    await waitUntil(() => collector.taken.length === 1);
    // Timers may be early by a millisecond.
    expect((arrivedMs[1] ?? 0) - (arrivedMs[0] ?? 0)).toBeGreaterThan(990);
  });
});

describe('a collector that is away', () => {
  it('is missed by so many bytes; the rest is counted, and reported when it is back', async () => {
    const collector = await newCollector();
    collector.behave({ status: 503 });
    const { observer, sink } = open(collector.url, { maxQueueBytes: 20_000 });
    const kept = upTo(1000).filter((number) => sink.record(numberedEvent(number)));
    expect(sink.queuedBytes).toBeLessThanOrEqual(20_000);
    expect(kept).toEqual(upTo(kept.length));
    expect(observer.droppedEvents).toBe(1000 - kept.length);
    collector.behave({ status: 200 });
    await waitUntil(() => sink.queuedBytes === 0);
    sink.record(numberedEvent(1000));
    await sink.close();
    const { gaps, ids } = readTrail(textOf(collector.taken));
    expect([ids, gaps]).toEqual([[...kept, 1000], [1000 - kept.length]]);
  });

  it('does not keep the process from its end', async () => {
    const collector = await newCollector();
    collector.behave('silence');
    const { observer, sink } = open(collector.url, { closeTimeoutMs: 100, timeoutMs: 60_000 });
    for (const number of upTo(100)) sink.record(numberedEvent(number));
    await waitUntil(() => collector.received.length === 1);
    await sink.close();
    expect(observer).toMatchObject({ writtenEvents: 0, droppedEvents: 100 });
    expect(sink.record(numberedEvent(100))).toBe(false);
  });
});
