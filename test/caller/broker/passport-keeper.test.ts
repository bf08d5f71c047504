/** When passports are renewed: a fake clock that the keeper's waits advance. */
import { describe, expect, it } from '@jest/globals';
import { BrokerClient } from '../../../src/caller/broker/broker-client.ts';
import { BrokerError } from '../../../src/caller/broker/broker-error.ts';
import { parseBrokerUrl } from '../../../src/caller/broker/broker-url.ts';
import { newHolderKey } from '../../../src/caller/broker/caller-prover.ts';
import { type Kept, PassportKeeper, retryWaitMs } from '../../../src/caller/broker/passport-keeper.ts';
import { ServiceHttp } from '../../../src/caller/service/service-http.ts';
import { startServer } from '../../support/caller/local-server.ts';
import { hostileRetryAfters } from '../../support/fixtures/retry-after-headers.ts';

const STOP = new AbortController().signal;

class Clock {
  wallMs = 1_000_000;
  monotonicMs = 0;

  pass(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }
}

interface Options {
  readonly lifetimeMs?: number;
  readonly issue?: (atMs: number) => void | Promise<void>;
  /** How far the broker's clock is ahead. */
  readonly aheadMs?: number;
}

function start({ aheadMs = 0, issue = () => {}, lifetimeMs = 300_000 }: Options = {}) {
  const clock = new Clock();
  const issuedAtMs: number[] = [];
  let changed = () => {};
  const keeper = new PassportKeeper<Kept>({
    issue: async () => {
      await issue(clock.monotonicMs);
      issuedAtMs.push(clock.monotonicMs);
      return { endsAtMs: clock.wallMs + aheadMs + lifetimeMs, lifetimeMs };
    },
    onChange: (listener) => {
      changed = listener;
      return () => {};
    },
    failureOf: (error) =>
      error instanceof BrokerError
        ? { kind: error.kind, code: error.code, text: error.message }
        : { kind: 'internal', code: 'internal', text: '' },
    now: () => ({ wallMs: clock.wallMs, monotonicMs: clock.monotonicMs }),
    sleep: async (waitMs) => clock.pass(waitMs),
    random: () => 0,
    report: () => {},
  });
  /** Runs the keeper for this long. */
  const goOn = async (ms: number) => {
    const endMs = clock.monotonicMs + ms;
    while (clock.monotonicMs < endMs) {
      const before = clock.monotonicMs;
      await keeper.check(STOP);
      if (issuedAtMs.length > 10_000) throw new Error('a busy loop');
      if (clock.monotonicMs === before) continue;
    }
  };
  return { clock, keeper, issuedAtMs, goOn, change: () => changed() };
}

describe('renewal', () => {
  it('at two thirds of the life', async () => {
    const { goOn, issuedAtMs } = start();
    await goOn(650_000);
    expect(issuedAtMs).toEqual([0, 200_000, 400_000, 600_000]);
  });

  it.each([-250_000, -100_000, 100_000, 3_600_000])(
    'does not hurry with a clock %i ms apart',
    async (aheadMs) => {
      const { goOn, issuedAtMs } = start({ aheadMs });
      await goOn(600_000);
      expect(issuedAtMs.length).toBeLessThanOrEqual(21);
      expect(issuedAtMs.length).toBeGreaterThanOrEqual(3);
    },
  );

  it('notices that the machine slept', async () => {
    const { clock, goOn, issuedAtMs } = start();
    await goOn(10_000);
    clock.wallMs += 280_000;
    await goOn(10_000);
    expect(issuedAtMs.length).toBe(2);
  });

  it('at once for a new credential, also during a call', async () => {
    const stop = new AbortController();
    let calls = 0;
    const during = start({
      issue: () => {
        calls++;
        if (calls === 1) during.change();
        if (calls === 2) stop.abort();
      },
    });
    await during.keeper.run(stop.signal);
    expect(during.issuedAtMs).toEqual([0, 0]);
  });

  it('wakes a sleeping keeper', async () => {
    const { clock, keeper, ...rest } = start();
    const stop = new AbortController();
    const sleeps: AbortSignal[] = [];
    const ports = {
      issue: async () => ({ endsAtMs: clock.wallMs + 300_000, lifetimeMs: 300_000 }),
      onChange: (listener: () => void) => {
        wake = listener;
        return () => {};
      },
      failureOf: () => ({ kind: 'internal', code: 'internal', text: '' }) as const,
      now: () => ({ wallMs: clock.wallMs, monotonicMs: clock.monotonicMs }),
      sleep: (_ms: number, signal: AbortSignal) => {
        sleeps.push(signal);
        if (sleeps.length === 2) stop.abort();
        else setImmediate(() => wake());
        return new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener('abort', () => resolve());
        });
      },
      random: () => 0,
      report: (event: { readonly kind: string }) => reports.push(event.kind),
    };
    let wake = () => {};
    const reports: string[] = [];
    await new PassportKeeper<Kept>(ports).run(stop.signal);
    expect(reports).toEqual(['renewed', 'renewed']);
    expect([keeper.current, rest.issuedAtMs]).toEqual([undefined, []]);
  });
});

describe('failure', () => {
  it('keeps the set, and asks again after 1 s, doubled to 10 s', async () => {
    const attempts: number[] = [];
    const { goOn, keeper, issuedAtMs } = start({
      issue: (atMs) => {
        attempts.push(atMs);
        if (atMs >= 200_000 && atMs < 240_000) throw new BrokerError('unreachable', 'unreachable', 'down');
      },
    });
    await goOn(199_000);
    const before = keeper.current;
    await goOn(20_000);
    expect([keeper.current, keeper.failure?.code]).toEqual([before, 'unreachable']);
    await goOn(40_000);
    expect([keeper.failure, keeper.current === before]).toEqual([undefined, false]);
    expect(attempts.slice(1).map((atMs) => Math.round((atMs - 200_000) / 1000))).toEqual([
      0, 1, 3, 7, 15, 25, 35, 45,
    ]);
    expect(issuedAtMs).toEqual([0, 245_000]);
  });

  it.each([
    ['unreachable', 300_000, 100_000, 5, undefined, 10_000],
    ['unreachable', 20_000, 6000, 5, undefined, 2000],
    ['unreachable', 5000, 1000, 5, undefined, 1000],
    ['refused', 3_600_000, 1_200_000, 9, undefined, 60_000],
    ['unreachable', 300_000, 100_000, 1, 30_000, 30_000],
    ['unreachable', 300_000, 100_000, 1, 3_600_000, 90_000],
    ['refused', 3_600_000, 50_000, 9, undefined, 40_000],
    ['unreachable', 300_000, 10_000, 1, 3_600_000, 2000],
    ['unreachable', 300_000, 0, 1, 3_600_000, 10_000],
    ['refused', 3_600_000, 0, 9, undefined, 60_000],
  ] as const)(
    '%s, life %i ms, %i ms left, attempt %i, Retry-After %s: %i ms',
    (kind, lifetimeMs, leftMs, count, retryAfterMs, expected) => {
      const kept = { endsAtMs: 7000 + leftMs, lifetimeMs };
      const failure = { kind, code: 'c', text: '' };
      expect(retryWaitMs(failure, { count, retryAfterMs, kept }, { nowMs: 7000, random: 0 })).toBe(expected);
    },
  );

  it.each(hostileRetryAfters())(
    'renews before the end, whatever a proxy answers: Retry-After: %s',
    async (text) => {
      let isAway = true;
      const server = await startServer((_seen, response) => {
        if (isAway) response.writeHead(503, { 'retry-after': text });
        else response.setHeader('content-type', 'application/json');
        response.end('{"profiles":[]}');
      });
      const url = parseBrokerUrl(`http://127.0.0.1:${server.port}`);
      const http = new ServiceHttp({ url, caPem: undefined });
      const clientCertificate = { chainPem: '', keyPem: '' };
      const prover = { holderKey: newHolderKey(), proof: { kind: 'connection', clientCertificate } as const };
      const { goOn, issuedAtMs } = start({
        issue: async (atMs) => {
          if (atMs === 0) return;
          isAway = atMs < 204_000;
          const brokerUrl = url.origin;
          await new BrokerClient({ http, brokerUrl, prover, timeoutMs: 10_000, stop: STOP }).profiles();
        },
      });
      await goOn(300_000);
      await Promise.all([http.close(), server.close()]);
      expect(issuedAtMs[1]).toBeGreaterThan(200_000);
      expect(issuedAtMs[1]).toBeLessThanOrEqual(290_000);
    },
  );
});
