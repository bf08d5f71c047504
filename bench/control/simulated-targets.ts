/**
 * Simulated targets: each follows by its own long-polls over HTTP, acknowledges, and counts the bytes that it received. They
 * accept every step unchecked and load no whole bundle, because a verifier that keeps up needs none.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { ACK_PATH, POLL_PATH } from '../../src/bundle/format/bundle-limits.ts';
import type { PollAnswer } from '../../src/bundle/format/distribution-contract.ts';
import { Spread } from './spread.ts';

interface Position {
  readonly revision: number;
  readonly head: string;
}

interface Polled {
  readonly answer: PollAnswer;
  readonly etag: string | undefined;
}

const WAIT_SECONDS = 30;
const LOOK_EVERY_MS = 20;
const GIVE_UP_MS = 120_000;

export class SimulatedTargets {
  readonly spread: Spread;
  readonly #url: string;
  readonly #agent: Agent;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[];
  /** The revision that each target acknowledged last. */
  readonly #held: number[];
  readonly #faults: unknown[] = [];
  /** Bytes of the answers, without headers. */
  #bytes = 0;

  constructor(url: string, tokens: readonly string[]) {
    this.#url = url;
    this.spread = new Spread(tokens.length);
    this.#held = tokens.map(() => 0);
    setMaxListeners(0, this.#stop.signal);
    this.#agent = new Agent({ connections: tokens.length * 2, headersTimeout: 2 * WAIT_SECONDS * 1000 });
    this.#running = tokens.map((token, index) =>
      this.#follow(token, index).catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#faults.push(error);
      }),
    );
  }

  /** Average bytes that one target received since the last call. @throws the error of any target */
  takeBytesPerTarget(): number {
    if (this.#faults.length > 0) throw this.#faults[0];
    const bytes = this.#bytes / this.#held.length;
    this.#bytes = 0;
    return bytes;
  }

  /** Until all of them have acknowledged the revision, or a later one. @throws Error after two minutes */
  async hold(revision: number): Promise<void> {
    const endMs = performance.now() + GIVE_UP_MS;
    while (Math.min(...this.#held) < revision) {
      if (performance.now() > endMs) throw new Error(`not every target has revision ${revision}`);
      if (this.#faults.length > 0) throw this.#faults[0];
      await delay(LOOK_EVERY_MS);
    }
  }

  /** The newest revision that any of them has. */
  get revision(): number {
    return Math.max(...this.#held);
  }

  async #follow(token: string, index: number): Promise<void> {
    let at: Position | undefined;
    let etag: string | undefined;
    while (!this.#stop.signal.aborted) {
      const polled = await this.#poll(token, at, etag);
      if (polled === undefined) continue;
      etag = polled.etag;
      const { revision, head, steps } = polled.answer;
      if (revision === at?.revision) continue;
      for (const step of steps) this.spread.learn(step);
      await this.#acknowledge(token, { revision, head });
      if (at !== undefined) this.spread.acknowledged(at.revision, revision);
      this.#held[index] = revision;
      at = { revision, head };
    }
  }

  async #poll(
    token: string,
    at: Position | undefined,
    etag: string | undefined,
  ): Promise<Polled | undefined> {
    // A target that has a whole bundle reports it, and would not fetch another one in this time.
    const place =
      at === undefined ? '' : `revision=${at.revision}&head=${at.head}&base_revision=${at.revision}&`;
    const url = `${this.#url}${POLL_PATH}?${place}wait_seconds=${WAIT_SECONDS}`;
    const { statusCode, headers, body } = await request(url, {
      dispatcher: this.#agent,
      signal: this.#stop.signal,
      headers: { authorization: `Bearer ${token}`, ...(etag === undefined ? {} : { 'if-none-match': etag }) },
    });
    const text = await body.text();
    this.#bytes += Buffer.byteLength(text);
    if (statusCode === 304) return undefined;
    if (statusCode !== 200) throw new Error(`a poll was answered ${statusCode}`);
    return { answer: JSON.parse(text), etag: typeof headers.etag === 'string' ? headers.etag : undefined };
  }

  async #acknowledge(token: string, { revision, head }: Position): Promise<void> {
    const { statusCode, body } = await request(`${this.#url}${ACK_PATH}`, {
      method: 'POST',
      dispatcher: this.#agent,
      signal: this.#stop.signal,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ revision, head, outcome: 'accepted' }),
    });
    await body.dump();
    if (statusCode !== 204) throw new Error(`an acknowledgement was answered ${statusCode}`);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
    await this.#agent.destroy();
  }
}
