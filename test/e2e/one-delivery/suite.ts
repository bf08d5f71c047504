/**
 * One proof, one delivery: whatever the API does with a request, it gets that request once. A gateway that repeats a request
 * makes the API act twice for one signature.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  NoResponse,
  NotHttp,
  type WireClient,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { type CountingUpstream, startCountingUpstream } from '../../support/fakes/counting-upstream.ts';
import type { EnforcementPoint, EnforcementPointDriver } from '../../support/points/enforcement-point.ts';
import { skipUnavailable } from '../../support/points/skip-unavailable.ts';
import { type Caller, derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { HTTP1_OCCASIONS, type Occasion } from './upstream-events.ts';

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Headers with which some clients repeat any method; a caller need not sign them. */
const HEADERS: readonly (readonly HeaderLine[])[] = [
  [],
  [['Idempotency-Key', 'k1']],
  [['X-Idempotency-Key', 'k1']],
];

const ROUTE_OF: { readonly [method: string]: SiteRoute } = Object.fromEntries(
  METHODS.map((method) => [
    method,
    {
      ...ROUTES.readOrder,
      route_id: `deliveries-${method.toLowerCase()}`,
      method,
      path_template: '/v1/deliveries',
    },
  ]),
);

/** nginx passes on a 103 as the whole answer, and callers wait for more. */
const SLOW: ReadonlySet<string> = new Set(['silent', 'closed_after_early_hints']);

interface Attempt extends Occasion {
  readonly name: string;
  readonly id: string;
  readonly method: string;
  readonly headers: readonly HeaderLine[];
  readonly body: string | undefined;
}

export interface OneDeliveryOptions {
  /** How long an API may stay silent. Longer than the point's own limit, where it has one. */
  readonly silenceMs: number;
  /** Methods that the point answers itself. */
  readonly neverDelivered?: readonly string[];
  /** Default: over HTTP/1.1. */
  readonly openUpstream?: () => Promise<CountingUpstream>;
  /** Occasions that this API implements. Default: those of HTTP/1.1. */
  readonly occasions?: readonly Occasion[];
}

export function oneDeliverySuite(driver: EnforcementPointDriver, options: OneDeliveryOptions): void {
  if (skipUnavailable(driver)) return;
  const attempts = attemptsAt(driver, options);
  describe(`one proof, one delivery at ${driver.name}`, () => {
    let site: Site;
    let point: EnforcementPoint;
    let upstream: CountingUpstream;
    beforeAll(async () => {
      site = await createSite();
      upstream = await (options.openUpstream ?? startCountingUpstream)();
      point = await driver.start({
        site,
        bundleDirectory: await site.makeBundle({ moreRoutes: Object.values(ROUTE_OF) }),
        replay: 'memory',
        audit: 'required_file',
        holderQuota: undefined,
        becomesReady: true,
        openUpstream: async () => upstream,
      });
    });
    afterAll(async () => {
      await point.stop();
      await site.remove();
    });

    it(
      `${attempts.length} requests are delivered once at most`,
      async () => {
        const sender = new Sender(site, point);
        for (const attempt of attempts.filter(({ event }) => !SLOW.has(event))) await sender.send(attempt);
        // Together, because each may take as long as the point waits for an API.
        const slow = attempts.filter(({ event }) => SLOW.has(event));
        await Promise.all(slow.map((attempt) => sender.send(attempt, options.silenceMs)));

        const delivered = (id: string) => upstream.deliveries.get(id) ?? 0;
        const names = (those: readonly Attempt[]) => those.map(({ name }) => name);
        expect(names(attempts.filter(({ id }) => delivered(id) > 1))).toEqual([]);
        // The run counts only if the requests arrived. A request on a connection that just closes may be lost.
        const lost = attempts.filter(({ before, id }) => before === 'answered' && delivered(id) === 0);
        expect(names(lost)).toEqual([]);
      },
      180_000 + options.silenceMs,
    );
  });
}

function attemptsAt(
  { takesBodies = true }: EnforcementPointDriver,
  { neverDelivered = [], occasions = HTTP1_OCCASIONS }: OneDeliveryOptions,
): readonly Attempt[] {
  const methods = METHODS.filter((method) => !neverDelivered.includes(method));
  const bodies = (method: string) =>
    takesBodies && /^(?:POST|PUT|PATCH)$/.test(method) ? [undefined, 'a body'] : [undefined];
  return occasions
    .flatMap(({ before, event }) =>
      methods.flatMap((method) =>
        HEADERS.flatMap((headers) =>
          bodies(method).map((body) => ({ before, event, method, headers, body })),
        ),
      ),
    )
    .map((attempt, index) => ({ ...attempt, id: `d${index}`, name: nameOf(attempt) }));
}

function nameOf({ before, body, event, headers, method }: Omit<Attempt, 'id' | 'name'>): string {
  const what = before === 'answered' ? event : before;
  return [
    method,
    ...headers.map(([name]) => name),
    ...(body === undefined ? [] : ['with a body']),
    what,
  ].join(' ');
}

class Sender {
  readonly #site: Site;
  readonly #point: EnforcementPoint;
  readonly #caller: Caller;

  constructor(site: Site, point: EnforcementPoint) {
    this.#site = site;
    this.#point = point;
    this.#caller = derivedKeyCaller(site);
  }

  /** First a request that opens a connection to the API, or uses the one that is there. */
  async send(attempt: Attempt, timeoutMs?: number): Promise<void> {
    const { before, event, id } = attempt;
    const client = http1Client(this.#point.address, timeoutMs);
    await this.#exchange(
      client,
      { method: 'GET', headers: [], body: undefined },
      `id=before${id}&event=${before}`,
    );
    await this.#exchange(client, attempt, `id=${id}&event=${event}`);
  }

  async #exchange(
    client: WireClient,
    { body, headers, method }: Pick<Attempt, 'body' | 'headers' | 'method'>,
    query: string,
  ): Promise<void> {
    const route = ROUTE_OF[method];
    if (route === undefined) throw new Error(`no route for ${method}`);
    const request = signedRequest(this.#site, {
      ...{ caller: this.#caller, route, target: `/v1/deliveries?${query}` },
      ...{ otherHeaders: headers, body },
    });
    try {
      await client.send(request);
    } catch (error) {
      if (!(error instanceof NoResponse || error instanceof NotHttp)) throw error;
    }
  }
}
