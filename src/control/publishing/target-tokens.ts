/**
 * Authenticates targets by token hash, with a cache of some seconds. Sites change many times a second while keys enroll,
 * so entries are dropped only when the site's targets changed; a request during that check waits for its result.
 */
import { LRUCache } from 'lru-cache';
import { ApiProblem } from '../domain/api-problem.ts';
import { tokenHash, tokenKind } from '../secrets/bearer-token.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Reported } from './known-members.ts';

const REMEMBERED_MS = 5000;
const MAX_REMEMBERED = 10_000;
const BEARER = /^Bearer +([A-Za-z0-9_-]+)$/i;

export interface KnownTarget {
  readonly targetId: string;
  readonly siteId: string;
  /** Generation of the site's targets when the entry was read. */
  readonly generation: number;
  /** Of the token in the request. */
  readonly tokenHash: string;
}

/** A target in a request. */
export interface ReportingTarget extends KnownTarget, Reported {}

export class TargetTokens {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;
  readonly #remembered = new LRUCache<string, KnownTarget>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS });
  /** Version of the targets of each cached site. */
  readonly #versions = new Map<string, string>();
  readonly #generations = new Map<string, number>();
  /** Running checks of whether a site's targets have changed. */
  readonly #checks = new Map<string, Promise<void>>();

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** @throws ApiProblem `authentication_required` */
  async owner(authorization: string | undefined): Promise<KnownTarget> {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined || tokenKind(token) !== 'target') throw new ApiProblem('authentication_required');
    const hash = tokenHash(token);
    const known = this.#remembered.get(hash);
    if (known !== undefined) {
      await this.#checks.get(known.siteId);
      if (this.#remembered.has(hash)) return known;
    }
    const target = await this.#find(hash);
    if (target === undefined) throw new ApiProblem('authentication_required');
    return target;
  }

  async #find(hash: string): Promise<KnownTarget | undefined> {
    const found = await this.#store.read(async (tx) => {
      const row = await tx.targets.byTokenHash(hash, this.#nowMs());
      return row && { row, version: await tx.propagation.versionOfTargets(row.siteId) };
    });
    if (found === undefined) return undefined;
    const { row, version } = found;
    // Other cached entries of the site, read at an earlier version, may be outdated.
    if (this.#versions.get(row.siteId) !== version) this.#forget(row.siteId);
    this.#versions.set(row.siteId, version);
    const target = {
      targetId: row.id,
      siteId: row.siteId,
      generation: this.generationOf(row.siteId),
      tokenHash: hash,
    };
    this.#remembered.set(hash, target, { ttl: this.#rememberedMs(row) });
    return target;
  }

  /** A token that rotation replaced is not cached beyond its end. */
  #rememberedMs({ previousTokenEndsAtMs }: RowOf<'target'>): number {
    if (previousTokenEndsAtMs === null) return REMEMBERED_MS;
    return Math.max(1, Math.min(REMEMBERED_MS, previousTokenEndsAtMs - this.#nowMs()));
  }

  /** Checks whether the site's targets changed, and if so drops their cache entries. */
  checkTargets(siteId: string): void {
    if (!this.#versions.has(siteId)) return;
    const check = (this.#checks.get(siteId) ?? Promise.resolve())
      .then(() => this.#store.read((tx) => tx.propagation.versionOfTargets(siteId)))
      .then(
        (version) => {
          if (this.#versions.get(siteId) !== version) this.#forget(siteId);
        },
        () => this.#forget(siteId),
      )
      .finally(() => {
        if (this.#checks.get(siteId) === check) this.#checks.delete(siteId);
      });
    this.#checks.set(siteId, check);
  }

  generationOf(siteId: string): number {
    return this.#generations.get(siteId) ?? 0;
  }

  /** Whether no target of the site was detached or got another token since. */
  async isCurrent({ siteId, generation }: KnownTarget): Promise<boolean> {
    await this.#checks.get(siteId);
    return this.generationOf(siteId) === generation;
  }

  #forget(siteId: string): void {
    this.#versions.delete(siteId);
    this.#generations.set(siteId, this.generationOf(siteId) + 1);
    for (const [hash, target] of this.#remembered.entries()) {
      if (target.siteId === siteId) this.#remembered.delete(hash);
    }
  }
}
