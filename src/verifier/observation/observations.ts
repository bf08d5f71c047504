/**
 * Which routes this verifier observes now: those for which the bundle and a flag say so, until the earlier end, and that it has
 * not enforced under the same flag before. Source: docs/operate/observe.md.
 */
import type { Route, RouteTable, Snapshot } from '../../bundle/compile/snapshot.ts';
import { enforcedText, MAX_NAMED } from '../../bundle/format/enforced-observations.ts';
import { pathOf } from '../../protocol/request-target.ts';
import { EnforcedPrefixes } from './enforced-prefixes.ts';
import { FollowedLatches } from './followed-latches.ts';
import { type AllowedByName, type LatchKeeper, UNMATCHED } from './latch-keeper.ts';
import { type LatchInputs, OwnLatches } from './own-latches.ts';

/** The local flags. Times in seconds since the epoch. */
export interface AllowedObservations {
  /** By route ID. */
  readonly routes: ReadonlyMap<string, number>;
  readonly unmatchedUntil: number | undefined;
}

export interface ObservationInputs extends LatchInputs {
  readonly allowed: AllowedObservations;
  readonly nowSeconds: () => number;
  /** Whether another process, the primary, owns the state directory. Default false. */
  readonly isWorker?: boolean;
}

export interface Observed {
  /** Undefined: requests that no route matches. */
  readonly routeId: string | undefined;
  readonly untilSeconds: number;
}

export interface ObservationStatus {
  readonly observed: readonly Observed[];
  /** Routes that the bundle wants observed now and that are enforced, without a flag or behind the latch; `unmatched` too. */
  readonly enforced: readonly {
    readonly name: string;
    readonly why: 'not_allowed' | 'latched' | 'latch_failed';
  }[];
}

/** What a decision asks. */
export type CurrentObservations = Pick<Observations, 'observes' | 'observesUnmatched'>;

const nameOfRoute = (routeId: string) => `route ${routeId}`;

/** The primary notices an end that no request meets, and its workers what it wrote. */
const TICK_MS = 200;

export class Observations {
  readonly #nowSeconds: () => number;
  readonly #allowed: AllowedByName;
  readonly #latches: LatchKeeper;
  #timer: NodeJS.Timeout | undefined;
  /** Of the bundle that was loaded last, with all that it wants observed. */
  #routes: RouteTable | undefined;
  #wishes: readonly Wish[] = [];
  #prefixes: EnforcedPrefixes | undefined;

  private constructor(nowSeconds: () => number, allowed: AllowedByName, latches: LatchKeeper) {
    this.#nowSeconds = nowSeconds;
    this.#allowed = allowed;
    this.#latches = latches;
  }

  /** Never rejects. */
  static async open(inputs: ObservationInputs): Promise<Observations> {
    const { isWorker = false, nowSeconds } = inputs;
    const { routes, unmatchedUntil } = inputs.allowed;
    const allowed = new Map([
      ...[...routes].map(([routeId, until]) => [nameOfRoute(routeId), until] as const),
      ...(unmatchedUntil === undefined ? [] : [[UNMATCHED, unmatchedUntil] as const]),
    ]);
    const latches = isWorker
      ? new FollowedLatches(inputs, allowed)
      : await OwnLatches.open(inputs, allowed, nowSeconds());
    return new Observations(nowSeconds, allowed, latches);
  }

  /** Notices from now on what no request reveals: ends, and in a worker what the primary wrote. */
  watch(): void {
    this.#timer ??= setInterval(() => this.#latches.tick(this.#nowSeconds()), TICK_MS).unref();
  }

  /** Returns when nothing is being written. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#latches.settled();
  }

  /**
   * With several processes: call it in the primary before its mark lets workers use the bundle, and in a worker once it does.
   * @throws BundleError `file_not_written`
   */
  async prepare(snapshot: Snapshot): Promise<void> {
    // The rest follows once the bundle is loaded: it may still be rejected.
    if (this.#latches.isOwner) this.#followLatches(snapshot);
    await this.#latches.ready();
  }

  /** Call it with each bundle that is loaded, before requests are decided by it. */
  follow(snapshot: Snapshot): void {
    this.#routes = snapshot.routes;
    this.#wishes = wishesOf(snapshot);
    const isUnmatchedAsked = this.#allowed.has(UNMATCHED) && snapshot.unmatchedUntilSeconds !== undefined;
    this.#prefixes = isUnmatchedAsked ? new EnforcedPrefixes(snapshot.routes.all()) : undefined;
    this.#followLatches(snapshot);
  }

  #followLatches(snapshot: Snapshot): void {
    const until = new Map(wishesOf(snapshot).map((wish) => [wish.name, wish.until]));
    const routes = new Set(snapshot.routes.all().map(({ routeId }) => nameOfRoute(routeId)));
    this.#latches.follow({ until, routes }, this.#nowSeconds());
  }

  /** Resolves when the latch is written, or could not be. */
  settled(): Promise<void> {
    return this.#latches.settled();
  }

  /** Whether denied requests of the route pass now. */
  observes({ observeUntilSeconds, routeId }: Route, nowSeconds: number): boolean {
    return (
      observeUntilSeconds !== undefined && this.#isOpen(nameOfRoute(routeId), observeUntilSeconds, nowSeconds)
    );
  }

  /** Whether a request that no route matches, with a canonical target of a known origin, passes now. */
  observesUnmatched(
    { routes, unmatchedUntilSeconds }: Snapshot,
    target: string,
    nowSeconds: number,
  ): boolean {
    if (unmatchedUntilSeconds === undefined || !this.#isOpen(UNMATCHED, unmatchedUntilSeconds, nowSeconds))
      return false;
    // A request keeps the bundle that it began with; the prefixes are those of the newest.
    if (this.#prefixes === undefined || this.#routes !== routes) return false;
    return !this.#prefixes.covers(pathOf(target), (route) => !this.observes(route, nowSeconds));
  }

  /** What is observed, and what is not although the bundle says so. */
  status(): ObservationStatus {
    const nowSeconds = this.#nowSeconds();
    const wishes = this.#wishes.filter(({ until }) => nowSeconds < until);
    const isOpen = ({ name, until }: Wish) => this.#isOpen(name, until, nowSeconds);
    return {
      observed: wishes.filter(isOpen).map(({ name, routeId, until }) => ({
        routeId,
        untilSeconds: Math.min(until, this.#allowed.get(name) ?? 0),
      })),
      enforced: wishes
        .filter((wish) => !isOpen(wish))
        .map(({ name, routeId }) => ({
          name: routeId ?? UNMATCHED,
          why: this.#whyEnforced(name, nowSeconds),
        })),
    };
  }

  /** For Control, as {@link enforcedText}: what is not observed although the bundle says so. Undefined when there is nothing. */
  async enforced(): Promise<string | undefined> {
    // An observation that begins with this bundle is observed once its latch is written.
    await this.#latches.settled();
    const nowSeconds = this.#nowSeconds();
    const enforced = this.#wishes.filter(
      ({ name, until }) => nowSeconds < until && !this.#isOpen(name, until, nowSeconds),
    );
    if (enforced.length === 0) return undefined;
    const routes = enforced.flatMap(({ routeId }) => routeId ?? []);
    const unmatched = routes.length < enforced.length;
    return enforcedText({ count: enforced.length, unmatched, routes: routes.slice(0, MAX_NAMED) });
  }

  #whyEnforced(name: string, nowSeconds: number) {
    const allowedUntil = this.#allowed.get(name);
    if (allowedUntil === undefined || !(nowSeconds < allowedUntil)) return 'not_allowed';
    return this.#latches.isClosed(name) ? 'latched' : 'latch_failed';
  }

  #isOpen(name: string, wishedUntil: number, nowSeconds: number): boolean {
    return this.#latches.isOpen(name, nowSeconds) && nowSeconds < wishedUntil;
  }
}

interface Wish {
  readonly name: string;
  readonly routeId: string | undefined;
  readonly until: number;
}

function wishesOf({ routes, unmatchedUntilSeconds }: Snapshot): readonly Wish[] {
  const ofRoutes = routes.all().flatMap(({ observeUntilSeconds: until, routeId }) => {
    return until === undefined ? [] : [{ name: nameOfRoute(routeId), routeId, until }];
  });
  if (unmatchedUntilSeconds === undefined) return ofRoutes;
  return [...ofRoutes, { name: UNMATCHED, routeId: undefined, until: unmatchedUntilSeconds }];
}
