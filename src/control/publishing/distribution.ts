/**
 * Serves targets: authentication, polls, acknowledgements and files of whole bundles. The token names the target, and a
 * target reads its own site only.
 * Source: docs/design/bundle.md "Distribution"; `distribution-contract.ts` of the bundle.
 */
import { setInterval } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { Acknowledgement, PollAnswer, PollQuery } from '../../bundle/format/distribution-contract.ts';
import { parseEnforced } from '../../bundle/format/enforced-observations.ts';
import { parseInstance } from '../../bundle/format/instance-report.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { ControlStore } from '../store/port.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { lackedMembersOf } from './known-members.ts';
import { answerTo, etagOf, isElsewhere, offerOf, positionOf, wholeAnswer } from './poll-answers.ts';
import { ReportedLimits } from './reported-limits.ts';
import { SiteFeed, type SiteState } from './site-feed.ts';
import { TargetAllowance } from './target-rate-limit.ts';
import { type ReportingTarget, TargetTokens } from './target-tokens.ts';
import { raiseFloor } from './targets-ahead.ts';
import { unknownMembers, withholdMembers } from './withheld-members.ts';

export interface DistributionOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  /** Reports failures that are retried. Must not throw. */
  readonly onFault?: (error: unknown) => void;
  /** Number of instances of a target that are listed; 256 by default. */
  readonly maxInstances?: number;
}

/** Values of the headers in which a verifier says what it is. */
export interface ReportHeaders {
  /** The optional bundle members that it knows. */
  readonly members?: string | undefined;
  /** What it enforces although the bundle says observe. */
  readonly enforced?: string | undefined;
  /** Which instance of its target it is. */
  readonly instance?: string | undefined;
  /** Its signature of the acknowledgement. */
  readonly signature?: string | undefined;
}

export type PollOutcome =
  | { readonly kind: 'answer'; readonly answer: PollAnswer; readonly etag: string }
  | { readonly kind: 'not_modified'; readonly etag: string | undefined };

/** Interval of checks for publications of other instances whose notice was lost. */
const LOOK_EVERY_MS = 1000;
const MAX_CACHED_FILE_BYTES = 64 * 1024 * 1024;
/** Up-to-date targets share few positions. Each answer may hold megabytes, and a target may claim any position. */
const MAX_KEPT_ANSWERS = 16;

type Answers = LRUCache<string, Promise<PollAnswer | undefined>>;

export class Distribution {
  readonly #options: DistributionOptions;
  readonly #tokens: TargetTokens;
  readonly #acknowledgements: Acknowledgements;
  readonly #limits: ReportedLimits;
  readonly #feeds = new Map<string, SiteFeed>();
  /** One cached answer for all targets at the same position. */
  readonly #answers = new WeakMap<SiteState, Answers>();
  readonly #floorRaises = new TargetAllowance();
  readonly #aheadNotes = new TargetAllowance();
  readonly #files = new LRUCache<string, Buffer>({
    maxSize: MAX_CACHED_FILE_BYTES,
    sizeCalculation: (content) => Math.max(1, content.length),
  });
  readonly #filesUnderWay = new Map<string, Promise<Buffer>>();
  readonly #stop = new AbortController();
  readonly #unsubscribe: () => void;
  readonly #looking: Promise<void>;

  constructor(options: DistributionOptions) {
    const { store, maxInstances, nowMs, onFault } = options;
    this.#options = options;
    this.#tokens = new TargetTokens(store, nowMs);
    this.#limits = new ReportedLimits(store, nowMs);
    this.#acknowledgements = new Acknowledgements({ store, nowMs, onFault, maxInstances });
    this.#unsubscribe = store.subscribe(({ topic, reference }) => {
      if (topic === 'site_changed') this.#tokens.checkTargets(reference);
      if (topic === 'site_published') void this.#look(reference);
    });
    this.#looking = this.#lookAgainAndAgain();
  }

  /**
   * @param authorization the header's value
   * @throws ApiProblem `authentication_required`
   */
  async authenticate(
    authorization: string | undefined,
    { enforced, instance, members, signature }: ReportHeaders = {},
  ): Promise<ReportingTarget> {
    return {
      ...(await this.#tokens.owner(authorization)),
      lackedMembers: lackedMembersOf(members),
      enforced: enforced === undefined ? undefined : parseEnforced(enforced),
      instance: instance === undefined ? undefined : parseInstance(instance),
      signature,
    };
  }

  /**
   * Long-poll: resolves when the target lacks something, or when the wait time is over.
   * @param etag the target's If-None-Match
   * @param signal aborts the wait: the target disconnected, or Control stops
   */
  async poll(
    authenticated: ReportingTarget,
    query: PollQuery,
    etag: string | undefined,
    signal: AbortSignal,
  ): Promise<PollOutcome> {
    const target = await this.#current(authenticated);
    const feed = this.#feed(target.siteId);
    const endMs = performance.now() + (query.wait_seconds ?? 0) * 1000;
    const reported = positionOf(query);
    const isOnChain = await this.#reconcile(feed, target, reported);
    for (;;) {
      const state = await feed.state();
      const current = etagOf(state);
      const unknown = unknownMembers(state, target);
      const isTooOld = unknown.length > 0;
      // It would reject the bundle, and deny everything: it waits for one without these members.
      if (isTooOld) await withholdMembers(this.#options.store, target, unknown, this.#options.nowMs());
      const answer = isTooOld || current === etag ? undefined : await this.#answer(feed, state, query);
      if (answer !== undefined) {
        await this.#limits.note(target);
        // The answer may let it go on for longer than what was published when the poll began.
        if (!signal.aborted) this.#acknowledgements.noteSeen(target, isOnChain, reported?.revision);
        return { kind: 'answer', answer, etag: current };
      }
      const leftMs = endMs - performance.now();
      if (leftMs <= 0 || signal.aborted) return { kind: 'not_modified', etag };
      await feed.awaitChange(leftMs, signal);
      // The target may be detached or its token rotated meanwhile; it must authenticate again.
      if (!(await this.#tokens.isCurrent(target))) return { kind: 'not_modified', etag };
    }
  }

  /**
   * Requests a publication that the target can accept, if nothing published continues from its position.
   * @returns whether something does
   */
  async #reconcile(
    feed: SiteFeed,
    target: ReportingTarget,
    reported: ChainPosition | undefined,
  ): Promise<boolean> {
    const isOnChain = reported === undefined || (await this.#canContinueFrom(feed, reported));
    this.#acknowledgements.noteSeen(target, isOnChain, reported?.revision);
    if (isOnChain) return true;
    const { store, nowMs } = this.#options;
    const { targetId } = target;
    const now = nowMs();
    await raiseFloor(store, target, reported, now, {
      mayRaise: () => this.#floorRaises.take(targetId, now),
      mayNote: () => this.#aheadNotes.take(targetId, now),
    });
    return false;
  }

  /** Whether something published continues from the target's position. */
  async #canContinueFrom(feed: SiteFeed, reported: ChainPosition): Promise<boolean> {
    const known = await feed.state();
    // Another instance may have just published a revision that this one has not read yet.
    const state = reported.revision > known.revision ? await feed.refresh() : known;
    if ((state.base?.revision ?? 0) > reported.revision) return true;
    return (await feed.stepsFrom(state, reported)) !== undefined;
  }

  #answer(feed: SiteFeed, state: SiteState, query: PollQuery): Promise<PollAnswer | undefined> {
    const answers: Answers = this.#answers.get(state) ?? new LRUCache({ max: MAX_KEPT_ANSWERS });
    this.#answers.set(state, answers);
    const offer = offerOf(state, query);
    const position = positionOf(query);
    const place = position === undefined ? '' : `${position.revision} ${position.head} ${offer}`;
    const known = answers.get(place);
    if (known !== undefined) return known;
    const answer =
      position === undefined
        ? wholeAnswer(feed, state)
        : answerTo(feed, state, { position, offer, whole: () => this.#answer(feed, state, {}) });
    answers.set(place, answer);
    return answer;
  }

  async acknowledge(authenticated: ReportingTarget, acknowledgement: Acknowledgement): Promise<void> {
    const target = await this.#current(authenticated);
    const feed = this.#feed(target.siteId);
    const known = await feed.state();
    const { revision, head } = acknowledgement;
    const state = revision > known.revision ? await feed.refresh() : known;
    if (revision > state.revision || (await isElsewhere(feed, state, { revision, head }))) {
      // This Control did not publish that revision, so its acceptance does not concern this chain.
      await this.#reconcile(feed, target, { revision, head });
      if (acknowledgement.outcome === 'accepted') return;
    }
    await this.#acknowledgements.add(target, acknowledgement);
  }

  /** Returns a file of a whole bundle. @throws ApiProblem `not_found` */
  async file(authenticated: ReportingTarget, revision: number, name: string): Promise<Buffer> {
    const target = await this.#current(authenticated);
    const { siteId } = target;
    await this.#limits.note(target);
    const { base } = await this.#feed(siteId).state();
    const files =
      base?.revision === revision
        ? base.files
        : await this.#options.store.read((tx) => tx.distribution.files(siteId, revision));
    const sha256 = files.find((file) => file.name === name)?.sha256;
    if (sha256 === undefined) throw new ApiProblem('not_found');
    return this.#content(siteId, sha256);
  }

  /** Cached, because many targets fetch the same files at once. */
  async #content(siteId: string, sha256: string): Promise<Buffer> {
    const place = `${siteId} ${sha256}`;
    const cached = this.#files.get(place);
    if (cached !== undefined) return cached;
    const underWay = this.#filesUnderWay.get(place);
    if (underWay !== undefined) return underWay;
    const reading = this.#options.store
      .read((tx) => tx.distribution.blob(siteId, sha256))
      .then((content) => {
        if (content === undefined) throw new ApiProblem('not_found');
        this.#files.set(place, content);
        return content;
      })
      .finally(() => this.#filesUnderWay.delete(place));
    this.#filesUnderWay.set(place, reading);
    return reading;
  }

  /** The target, unless it was detached since it authenticated. @throws ApiProblem `authentication_required` */
  async #current(target: ReportingTarget): Promise<ReportingTarget> {
    if (await this.#tokens.isCurrent(target)) return target;
    const row = await this.#options.store.read((tx) => tx.targets.find(target.targetId));
    if (row?.state !== 'attached') throw new ApiProblem('authentication_required');
    return { ...target, generation: this.#tokens.generationOf(target.siteId) };
  }

  #feed(siteId: string): SiteFeed {
    const known = this.#feeds.get(siteId);
    if (known !== undefined) return known;
    const feed = new SiteFeed(this.#options.store, siteId);
    this.#feeds.set(siteId, feed);
    return feed;
  }

  async #look(siteId: string): Promise<void> {
    await this.#feeds
      .get(siteId)
      ?.refresh()
      .catch((error: unknown) => {
        const isGone = error instanceof ApiProblem && error.code === 'not_found';
        if (isGone) this.#feeds.delete(siteId);
        else this.#options.onFault?.(error);
      });
  }

  async #lookAgainAndAgain(): Promise<void> {
    const { signal } = this.#stop;
    try {
      for await (const _ of setInterval(LOOK_EVERY_MS, undefined, { signal })) {
        for (const [siteId, feed] of this.#feeds) {
          if (feed.isWaitedFor) await this.#look(siteId);
          // No poll waits, so drop the feed instead of letting it become stale.
          else this.#feeds.delete(siteId);
        }
      }
    } catch {
      // Aborted by close().
    }
  }

  /** Writes pending acknowledgements. Waiting polls end by their own signals. */
  async close(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    await this.#looking;
    await this.#acknowledgements.close();
  }
}
