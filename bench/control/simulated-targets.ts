/** Simulated targets: each follows by long-polls of its own over HTTP, acknowledges, and counts the bytes that it got. */
import { setMaxListeners } from 'node:events';
import { Agent, request } from 'undici';
import { ACK_PATH, POLL_PATH } from '../../src/bundle/distribution-contract.ts';

interface Position {
  readonly revision: number;
  readonly head: string;
}

export class SimulatedTargets {
  readonly #url: string;
  readonly #agent: Agent;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[];
  /** Of answers, headers left out. */
  #bytes = 0;
  readonly count: number;

  constructor(url: string, tokens: readonly string[]) {
    this.#url = url;
    this.count = tokens.length;
    setMaxListeners(0, this.#stop.signal);
    this.#agent = new Agent({ connections: tokens.length * 2, headersTimeout: 60_000 });
    this.#running = tokens.map((token) => this.#follow(token));
  }

  /** Received by one target on average since this was asked last. */
  takeBytesPerTarget(): number {
    const bytes = this.#bytes / this.count;
    this.#bytes = 0;
    return bytes;
  }

  async #follow(token: string): Promise<void> {
    let at: Position | undefined;
    let etag: string | undefined;
    while (!this.#stop.signal.aborted) {
      try {
        const answer = await this.#poll(token, at, etag);
        if (answer === undefined) continue;
        etag = answer.etag;
        if (answer.position.revision === at?.revision) continue;
        at = answer.position;
        await this.#acknowledge(token, at);
      } catch (error) {
        if (!this.#stop.signal.aborted) throw error;
      }
    }
  }

  async #poll(token: string, at: Position | undefined, etag: string | undefined) {
    // A target that has a whole bundle says so; it would not fetch another one in this time.
    const place =
      at === undefined ? '' : `revision=${at.revision}&head=${at.head}&base_revision=${at.revision}&`;
    const { statusCode, headers, body } = await request(`${this.#url}${POLL_PATH}?${place}wait_seconds=30`, {
      dispatcher: this.#agent,
      signal: this.#stop.signal,
      headers: { authorization: `Bearer ${token}`, ...(etag === undefined ? {} : { 'if-none-match': etag }) },
    });
    const text = await body.text();
    this.#bytes += Buffer.byteLength(text);
    if (statusCode === 304) return undefined;
    if (statusCode !== 200) throw new Error(`a poll was answered ${statusCode}`);
    const { revision, head } = JSON.parse(text) as Position;
    return {
      position: { revision, head },
      etag: typeof headers.etag === 'string' ? headers.etag : undefined,
    };
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
