/**
 * Measures how a change reaches all targets of a site: which revision carries it, and when the last target had its
 * acknowledgement of that revision, or of a later one, confirmed. Times are of `performance.now()`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { DistributedStep } from '../../src/bundle/format/distribution-contract.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../src/protocol/strict-json.ts';

export type KeyStatus = 'active' | 'revoked';

const LOOK_EVERY_MS = 5;
const GIVE_UP_MS = 60_000;

export class Spread {
  readonly #targets: number;
  readonly #revisionOf = new Map<string, number>();
  /** How many targets have each revision. */
  readonly #holders = new Map<number, number>();
  readonly #everywhereAtMs = new Map<number, number>();

  constructor(targets: number) {
    this.#targets = targets;
  }

  /** Control sent the change to a target. Only the first target opens the entry. */
  learn({ kind, revision, document }: DistributedStep): void {
    if (this.#holders.has(revision)) return;
    this.#holders.set(revision, 0);
    if (kind !== 'delta') return;
    const { keys_put: keys } = payloadOf(document);
    if (!Array.isArray(keys)) throw new Error('a delta without keys_put');
    for (const key of keys.filter(isJsonObject)) {
      const name = `${String(key.key_id)} ${String(key.status)}`;
      if (!this.#revisionOf.has(name)) this.#revisionOf.set(name, revision);
    }
  }

  /** A target's acknowledgement was confirmed: it has come from one revision to another. */
  acknowledged(from: number, to: number): void {
    const nowMs = performance.now();
    for (let revision = from + 1; revision <= to; revision++) {
      const holders = (this.#holders.get(revision) ?? 0) + 1;
      this.#holders.set(revision, holders);
      if (holders === this.#targets) this.#everywhereAtMs.set(revision, nowMs);
    }
  }

  /** The time since which all targets have the delta that first contains this status of the key. @throws Error after a minute */
  everywhereAt(keyId: string, status: KeyStatus): Promise<number> {
    return this.#awaited(`${keyId} is nowhere near everywhere`, () => {
      const revision = this.#revisionOf.get(`${keyId} ${status}`);
      return revision === undefined ? undefined : this.#everywhereAtMs.get(revision);
    });
  }

  /** Since when all targets have some revision after this one. @throws Error after a minute */
  everywhereAfter(revision: number): Promise<number> {
    return this.#awaited(`nothing after revision ${revision} is everywhere`, () => {
      for (const [held, atMs] of this.#everywhereAtMs) if (held > revision) return atMs;
      return undefined;
    });
  }

  /** Moments are kept as they come: how often it is looked makes no difference to them. */
  async #awaited(failure: string, look: () => number | undefined): Promise<number> {
    const endMs = performance.now() + GIVE_UP_MS;
    for (let found = look(); ; found = look()) {
      if (found !== undefined) return found;
      if (performance.now() > endMs) throw new Error(failure);
      await delay(LOOK_EVERY_MS);
    }
  }
}

/** Of a JWS in the general JSON serialization. Signatures are the verifier's business, and not measured here. */
function payloadOf(document: string): JsonObject {
  const jws = parseStrictJson(document);
  const text = isJsonObject(jws) ? Buffer.from(String(jws.payload), 'base64url').toString('utf8') : '';
  const payload = parseStrictJson(text);
  if (!isJsonObject(payload)) throw new Error('a step without a payload');
  return payload;
}
