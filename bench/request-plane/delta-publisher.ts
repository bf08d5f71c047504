/**
 * A Control that publishes deltas at a fixed rate. It has a thread of its own, so that its work does not delay the thread that
 * measures checks.
 */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { signDelta } from '../../src/bundle/authoring/publishing-documents.ts';
import type { ChainPosition } from '../../src/bundle/format/chain.ts';
import type { PublicJwk } from '../../src/protocol/public-key.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../src/protocol/signing.ts';
import { type FakeControl, startFakeControl } from '../../test/support/fakes/control-distribution.ts';
import { waitFor } from '../../test/support/wait.ts';
import { AUTH_SITE, type BenchSite, contentOf, keyEntry, keyName } from './site.ts';

export const KEYS = 100_000;
export const DELTAS_A_SECOND = 30;
export const KEYS_A_DELTA = 10;
/** A minimum share of the due deltas: the last one may still be in flight at the end. */
const LEAST_SHARE = 0.95;
/** After the end: a verifier that falls behind has not had the load that is measured. */
const MOST_BEHIND_MS = 5_000;
/** Deltas are signed before a slice begins, for that may not cost the machine anything meanwhile: enough for so many seconds. */
const READY_SECONDS = 5;
const TOKEN = 'bench-target-token';

type Order = 'begin' | 'end' | 'until_taken' | 'stop';
type Answer = { readonly value: number | string } | { readonly fault: string };

/** The site; the signing callers' keys are made in the measuring thread. */
interface PublishedSite {
  readonly signer: SigningKey;
  readonly callerKeys: readonly PublicJwk[];
}

/** The measuring thread's view of the publisher. */
export class DeltaPublisher {
  readonly token = TOKEN;
  readonly #worker: Worker;
  readonly url: string;

  private constructor(worker: Worker, url: string) {
    this.#worker = worker;
    this.url = url;
  }

  static async start({ callers, signer }: BenchSite): Promise<DeltaPublisher> {
    const callerKeys = callers.map(({ key }) => key.publicKey.jwk);
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { signer, callerKeys } satisfies PublishedSite,
    });
    return new DeltaPublisher(worker, String(await answerOf(worker)));
  }

  async begin(): Promise<void> {
    await this.#order('begin');
  }

  /** @returns deltas in a second @throws when there were too few: the run is void */
  async end(): Promise<number> {
    return Number(await this.#order('end'));
  }

  /** Until the verifier acknowledges the end of the chain. @returns milliseconds @throws when it does not in time */
  async untilTaken(): Promise<number> {
    return Number(await this.#order('until_taken'));
  }

  async stop(): Promise<void> {
    await this.#order('stop');
    await this.#worker.terminate();
  }

  async #order(order: Order): Promise<number | string> {
    this.#worker.postMessage(order);
    return await answerOf(this.#worker);
  }
}

async function answerOf(worker: Worker): Promise<number | string> {
  const [answer] = (await once(worker, 'message')) as [Answer];
  if ('fault' in answer) throw new Error(answer.fault);
  return answer.value;
}

/** They stay. */
const KEYS_IN_USE = 100;
type SignedDelta = ReturnType<typeof signDelta>;

/** Deltas by the clock: new keys for as many old ones. What is late is made up for. */
class DeltaStream {
  readonly #control: FakeControl;
  readonly #signer: SigningKey;
  #nextKey = KEYS;
  #oldestKey = KEYS_IN_USE;
  #ready: SignedDelta[] = [];
  /** The position that the last prepared delta leads to. */
  #end: ChainPosition;
  #timer: NodeJS.Timeout | undefined;
  #startMs = 0;
  #published = 0;

  constructor(control: FakeControl, signer: SigningKey) {
    this.#control = control;
    this.#signer = signer;
    this.#end = control.position;
  }

  begin(): number {
    while (this.#ready.length < DELTAS_A_SECOND * READY_SECONDS) this.#ready.push(this.#sign());
    this.#startMs = performance.now();
    this.#published = 0;
    this.#timer = setInterval(() => this.#publishDue(), 1000 / DELTAS_A_SECOND);
    return 0;
  }

  end(): number {
    clearInterval(this.#timer);
    const perSecond = this.#published / this.#seconds();
    if (perSecond < DELTAS_A_SECOND * LEAST_SHARE)
      throw new Error(`void run: ${perSecond} deltas in a second`);
    return perSecond;
  }

  async untilTaken(): Promise<number> {
    const startMs = performance.now();
    const { head, revision } = this.#control.position;
    const atMs = await waitFor(
      `void run: revision ${revision} to be taken`,
      () => {
        const last = this.#control.acknowledgements.findLast(({ outcome }) => outcome === 'accepted');
        return last?.revision === revision && last.head === head ? last.atMs : undefined;
      },
      MOST_BEHIND_MS,
    );
    return Math.max(0, atMs - startMs);
  }

  #seconds(): number {
    return (performance.now() - this.#startMs) / 1000;
  }

  #publishDue(): void {
    for (; this.#published < Math.floor(this.#seconds() * DELTAS_A_SECOND); this.#published += 1)
      this.#control.publishSigned(this.#ready.shift() ?? this.#sign());
  }

  #sign(): SignedDelta {
    const { head, revision } = this.#end;
    const expiresAt = formatTime(nowSeconds() + 3600);
    const signed = signDelta(
      {
        auth_site: AUTH_SITE,
        revision: revision + 1,
        previous_head: head,
        issued_at: formatTime(nowSeconds()),
        clients_put: [],
        clients_removed: [],
        keys_put: Array.from({ length: KEYS_A_DELTA }, () => keyEntry(this.#nextKey++, expiresAt)),
        keys_removed: Array.from({ length: KEYS_A_DELTA }, () => keyName(this.#oldestKey++)),
      },
      [this.#signer],
    );
    this.#end = signed.position;
    return signed;
  }
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Starts a Control with all the keys, published and fresh. */
async function startControl({ callerKeys, signer }: PublishedSite): Promise<FakeControl> {
  const control = await startFakeControl({ authSite: AUTH_SITE, signer, nowSeconds, token: TOKEN });
  const times = { issued_at: formatTime(nowSeconds()), expires_at: formatTime(nowSeconds() + 7200) };
  const content = contentOf({ routes: 10, keys: KEYS });
  const derivedKeys = content.derived_keys.map((entry, at) => ({
    ...entry,
    jwk: callerKeys[at] ?? entry.jwk,
  }));
  control.publishWhole({ ...content, derived_keys: derivedKeys, ...times }, true);
  control.freshen();
  return control;
}

async function publishOnOrder(site: PublishedSite): Promise<void> {
  const control = await startControl(site);
  const deltas = new DeltaStream(control, site.signer);
  const does: { readonly [O in Order]: () => number | Promise<number | undefined> } = {
    begin: () => deltas.begin(),
    end: () => deltas.end(),
    until_taken: () => deltas.untilTaken(),
    stop: () => control.close().then(() => 0),
  };
  const tell = (answer: Answer) => parentPort?.postMessage(answer);
  parentPort?.on('message', (order: Order) => {
    Promise.resolve()
      .then(does[order])
      .then(
        (value) => tell({ value: value ?? 0 }),
        (error: unknown) => tell({ fault: String(error) }),
      );
  });
  tell({ value: control.url });
}

if (!isMainThread) await publishOnOrder(workerData as PublishedSite);
