/** A Control that publishes without a pause: whole bundles of a new generation, bundles with a link, and deltas. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { type FakeControl, startFakeControl } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { type CallerKeys, contentOf, type Generation, nowSeconds, turnKeyEntry } from './generations.ts';
import type { Published } from './judge.ts';

const MOST_PAUSE_MS = 24;
/** Revisions that it is ahead of who follows, without a longer pause. */
const MOST_AHEAD = 3;
/** Of ten steps in the chain so many are whole bundles, and so many are linked. */
const WHOLES_IN_TEN = 1;
const LINKED_IN_TEN = 2;

export class Publisher {
  readonly control: FakeControl;
  readonly published = new Map<number, Published>();
  readonly #keys: CallerKeys;
  #now: Generation = { generation: 1, turnKey: 'odd' };
  #isRunning = false;
  #running: Promise<void> | undefined;

  private constructor(control: FakeControl, keys: CallerKeys) {
    this.control = control;
    this.#keys = keys;
  }

  static async start(keys: CallerKeys, token: string): Promise<Publisher> {
    const control = await startFakeControl({ authSite: AUTH_SITE, signer: keys.bundle, nowSeconds, token });
    const publisher = new Publisher(control, keys);
    publisher.#keep(control.publishWhole(contentOf(keys, publisher.#now), true));
    return publisher;
  }

  run(): void {
    this.#isRunning = true;
    this.#running = this.#publish();
  }

  async pause(): Promise<void> {
    this.#isRunning = false;
    await this.#running;
  }

  /** The revision that the verifier last acknowledged as in use. */
  get acknowledged(): number {
    return this.control.acknowledgements.findLast(({ outcome }) => outcome === 'accepted')?.revision ?? 0;
  }

  /** Revisions that verifiers rejected, with the reason. */
  get refusals(): readonly string[] {
    return this.control.acknowledgements.flatMap(({ code, detail }) =>
      code === undefined ? [] : `${code}: ${detail}`,
    );
  }

  async #publish(): Promise<void> {
    while (this.#isRunning) {
      this.#next();
      if (Math.random() < 0.2) this.control.freshen();
      await sleep(Math.random() * MOST_PAUSE_MS);
      await this.#letFollow();
    }
  }

  /** On a slow machine it would else fetch nothing but whole bundles. Not for long: it may be dead. */
  async #letFollow(): Promise<void> {
    const isFar = () => this.control.position.revision > this.acknowledged + MOST_AHEAD;
    for (let turn = 0; turn < 10 && isFar() && this.#isRunning; turn++) await sleep(MOST_PAUSE_MS);
  }

  #next(): void {
    const turn = Math.floor(Math.random() * 10);
    if (turn < WHOLES_IN_TEN) {
      const generation = this.control.position.revision + 1;
      this.#now = { generation, turnKey: this.#now.turnKey === 'odd' ? 'even' : 'odd' };
      this.#keep(this.control.publishWhole(contentOf(this.#keys, this.#now), true));
    } else if (turn < WHOLES_IN_TEN + LINKED_IN_TEN) {
      this.#keep(this.control.publishLinked(contentOf(this.#keys, this.#now), true));
    } else {
      const turnKey = this.#now.turnKey === 'odd' ? 'even' : 'odd';
      this.#now = { ...this.#now, turnKey };
      this.#keep(this.control.publishDelta({ keys_put: [turnKeyEntry(this.#keys, turnKey)] }));
    }
  }

  #keep({ head, revision }: ChainPosition): void {
    this.published.set(revision, { ...this.#now, head });
  }
}
