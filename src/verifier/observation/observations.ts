/**
 * Which routes this verifier observes now: those for which the bundle and a flag say so, until the earlier end, and that it has
 * not enforced under the same flag before. Source: docs/operate/observe.md.
 */
import type { Route, RouteTable, Snapshot } from '../../bundle/compile/snapshot.ts';
import { MAX_OBSERVATION_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { enforcedText, MAX_NAMED } from '../../bundle/format/enforced-observations.ts';
import { pathOf } from '../../protocol/request-target.ts';
import { EnforcedPrefixes } from './enforced-prefixes.ts';
import { type Latch, type Latches, readLatches, writeLatches } from './latch-file.ts';

/** The local flags. Times in seconds since the epoch. */
export interface AllowedObservations {
  /** By route ID. */
  readonly routes: ReadonlyMap<string, number>;
  readonly unmatchedUntil: number | undefined;
}

export interface ObservationInputs {
  readonly allowed: AllowedObservations;
  readonly stateDirectory: string;
  readonly authSite: string;
  readonly nowSeconds: () => number;
  /** Reports that the latch cannot be read or written; nothing new is observed. */
  readonly onLatchFailed: (error: unknown) => void;
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

const UNMATCHED = 'unmatched';
const nameOfRoute = (routeId: string) => `route ${routeId}`;

export class Observations {
  readonly #inputs: ObservationInputs;
  /** By name: the flags. */
  readonly #allowed: ReadonlyMap<string, number>;
  readonly #latches: Map<string, Latch>;
  /** Names of observations whose beginning is on disk. */
  readonly #begun = new Set<string>();
  readonly #isReadable: boolean;
  #writing: Promise<void> = Promise.resolve();
  /** Of the bundle that was loaded last, with all that it wants observed. */
  #routes: RouteTable | undefined;
  #wishes: readonly Wish[] = [];
  #prefixes: EnforcedPrefixes | undefined;

  private constructor(inputs: ObservationInputs, latches: Latches | undefined) {
    const { routes, unmatchedUntil } = inputs.allowed;
    this.#inputs = inputs;
    this.#allowed = new Map([
      ...[...routes].map(([routeId, until]) => [nameOfRoute(routeId), until] as const),
      ...(unmatchedUntil === undefined ? [] : [[UNMATCHED, unmatchedUntil] as const]),
    ]);
    this.#isReadable = latches !== undefined;
    this.#latches = new Map(latches);
  }

  /** Never rejects. */
  static async open(inputs: ObservationInputs): Promise<Observations> {
    const { authSite, nowSeconds, onLatchFailed, stateDirectory } = inputs;
    const latches = await readLatches(stateDirectory, authSite).catch((error: unknown) => {
      onLatchFailed(error);
      return undefined;
    });
    const opened = new Observations(inputs, latches);
    opened.#closeWhatIsNotAllowed(nowSeconds());
    return opened;
  }

  /** Call it with each bundle that is loaded, before requests are decided by it. */
  follow(snapshot: Snapshot): void {
    this.#routes = snapshot.routes;
    this.#wishes = wishesOf(snapshot);
    const isUnmatchedAsked = this.#allowed.has(UNMATCHED) && snapshot.unmatchedUntilSeconds !== undefined;
    this.#prefixes = isUnmatchedAsked ? new EnforcedPrefixes(snapshot.routes.all()) : undefined;
    if (this.#allowed.size === 0 || !this.#isReadable) return;
    const nowSeconds = this.#inputs.nowSeconds();
    let isChanged = false;
    const wished = new Map(this.#wishes.map(({ name, until }) => [name, until]));
    for (const [name, allowedUntil] of this.#allowed) {
      const before = this.#latches.get(name);
      const after = nextLatch(before, allowedUntil, wished.get(name), nowSeconds);
      if (isSame(before, after)) continue;
      this.#latches.set(name, after);
      isChanged = true;
    }
    if (isChanged) this.#write();
  }

  /** Resolves when the latch is written, or could not be. */
  settled(): Promise<void> {
    return this.#writing;
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
    const nowSeconds = this.#inputs.nowSeconds();
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
    await this.#writing;
    const nowSeconds = this.#inputs.nowSeconds();
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
    return this.#latches.get(name)?.isClosed === true ? 'latched' : 'latch_failed';
  }

  /** Closes the latch once the end has passed, so that a clock that is set back does not open it again. */
  #isOpen(name: string, wishedUntil: number, nowSeconds: number): boolean {
    const latch = this.#latches.get(name);
    if (latch === undefined || latch.isClosed || !this.#begun.has(name)) return false;
    if (!(nowSeconds < latch.until)) {
      this.#latches.set(name, { ...latch, isClosed: true });
      this.#write();
      return false;
    }
    return nowSeconds < wishedUntil;
  }

  /** Without its flag, an observation has ended. */
  #closeWhatIsNotAllowed(nowSeconds: number): void {
    let isChanged = false;
    for (const [name, latch] of this.#latches) {
      if (this.#allowed.get(name) === latch.allowedUntil) {
        if (!latch.isClosed) this.#begun.add(name);
      } else if (latch.allowedUntil + MAX_OBSERVATION_SECONDS < nowSeconds) {
        // That flag has ended: given again, it would allow nothing.
        this.#latches.delete(name);
        isChanged = true;
      } else if (!latch.isClosed) {
        this.#latches.set(name, { ...latch, isClosed: true });
        isChanged = true;
      }
    }
    if (isChanged) this.#write();
  }

  /** An observation counts as begun only once its latch is on disk. */
  #write(): void {
    const { authSite, onLatchFailed, stateDirectory } = this.#inputs;
    const latches = new Map(this.#latches);
    this.#writing = this.#writing
      .then(() => writeLatches(stateDirectory, authSite, latches))
      .then(() => {
        for (const [name, { isClosed }] of latches) if (!isClosed) this.#begun.add(name);
      }, onLatchFailed);
  }
}

function nextLatch(
  before: Latch | undefined,
  allowedUntil: number,
  wishedUntil: number | undefined,
  nowSeconds: number,
): Latch {
  const known = before?.allowedUntil === allowedUntil ? before : undefined;
  if (known?.isClosed === true) return known;
  const until = Math.min(allowedUntil, wishedUntil ?? 0);
  const hasEnded = known !== undefined && !(nowSeconds < known.until);
  return { allowedUntil, until, isClosed: hasEnded || !(nowSeconds < until) };
}

function isSame(a: Latch | undefined, b: Latch): boolean {
  return a?.allowedUntil === b.allowedUntil && a.until === b.until && a.isClosed === b.isClosed;
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
