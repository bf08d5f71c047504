/**
 * A site under random schedules: the real publisher, distribution, ledger and receipts over SQLite, and verifiers made of the real
 * loader, freshness statements and staleness rule. The schedule decides when they poll, what is lost, what their clocks show, and
 * which state directory they start from.
 */
import type { BreakGlassStatement } from '../../../src/bundle/compile/snapshot.ts';
import type { Acknowledgement, PollAnswer } from '../../../src/bundle/format/distribution-contract.ts';
import type { ResolvedDirectory } from '../../../src/bundle/format/local-directory.ts';
import type { RevocationReceipt } from '../../../src/bundle/format/revocation-receipt.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { FreshnessIssuer } from '../../../src/control/publishing/freshness-renewal.ts';
import { receiptOf } from '../../../src/control/publishing/revocation-receipts.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { checkFreshness, isAgeSuspended } from '../../../src/verifier/decision/steps/freshness.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { Instance } from '../../../src/verifier/loading/refresh/instance.ts';
import { MemoryMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import type { Random } from '../../support/random.ts';
import { addTarget, detach, type TestTarget } from './control-server.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

const never = new AbortController().signal;
const SKEW_SECONDS = 5;
const NOTHING = 'nothing is loaded';

/** Settings of a verifier, which stay with its state directory: the assumption `limits_as_reported`. */
interface Kind {
  readonly realtimeStalenessSeconds: number;
  /** `old`: says nothing of itself. `break_glass`: a statement may name any head. */
  readonly kind: 'signing' | 'old' | 'break_glass';
}

/** What a state directory holds: everything that was loaded, in order. */
interface State {
  readonly kind: Kind;
  readonly target: TestTarget;
  readonly loads: readonly ((loader: BundleLoader) => Promise<unknown>)[];
}

class ModelVerifier {
  readonly state: State;
  readonly loader: BundleLoader;
  readonly #instance: Instance;
  readonly #loads: ((loader: BundleLoader) => Promise<unknown>)[] = [];
  readonly #nowSeconds: () => number;
  /** Of the last answer that was applied completely. */
  #etag: string | undefined;
  /** Whether it named its revision in a request that Control has not written, and whether Control knows all that it received. */
  isUnwritten = false;
  isKnown = false;

  constructor(world: Model, state: State, clockAheadMs: number) {
    this.state = state;
    this.#nowSeconds = () => Math.floor((world.control.clock.ms + clockAheadMs) / 1000);
    this.loader = new BundleLoader({
      ...{ authSite: SITE, directory: undefined, mark: new MemoryMark(), nowSeconds: this.#nowSeconds },
      ...{ bundleSigners: world.bundleSigners, freshnessSigners: world.freshnessSigners },
    });
    const { kind, realtimeStalenessSeconds } = state.kind;
    this.#instance = new Instance({
      ...{ version: '0.4.0', readStoreId: undefined, authSite: SITE, realtimeStalenessSeconds },
      hasBreakGlass: kind === 'break_glass',
    });
  }

  async start(): Promise<void> {
    for (const load of this.state.loads) await this.#load(load);
  }

  async #load(load: (loader: BundleLoader) => Promise<unknown>): Promise<void> {
    this.#loads.push(load);
    await load(this.loader);
  }

  /** What its state directory holds now. */
  saved(): State {
    return { ...this.state, loads: [...this.#loads] };
  }

  /** Polls, applies the answer, and acknowledges. @param loses what does not arrive */
  async poll(model: Model, loses: 'nothing' | 'answer' | 'acknowledgement'): Promise<void> {
    const { position } = this.loader;
    const authorization = `Bearer ${this.state.target.token}`;
    const isOld = this.state.kind.kind === 'old';
    const headers = isOld ? {} : { instance: this.#instance.text() };
    const { distribution } = model;
    const target = await distribution.authenticate(authorization, headers).catch(() => undefined);
    if (target === undefined) return;
    const result = await distribution.poll(target, { ...position }, this.#etag, never);
    this.isUnwritten = position !== undefined;
    this.isKnown = false;
    if (result.kind === 'not_modified' || loses === 'answer') return;
    await this.#take(model, result.answer);
    const after = this.loader.position;
    if (after === undefined) return;
    this.#etag = after.head === result.answer.head ? result.etag : undefined;
    if (loses === 'acknowledgement' || after.head === position?.head) return;
    const acknowledgement: Acknowledgement = { ...after, outcome: 'accepted' };
    const signature = isOld ? undefined : this.#instance.sign(acknowledgement, this.state.target.token);
    await distribution.acknowledge({ ...target, signature }, acknowledgement);
    // Old ones count as one, which the newest acknowledgement moves.
    this.isKnown = !isOld;
  }

  async #take(model: Model, { freshness, steps, whole }: PollAnswer): Promise<void> {
    const documents = (of: PollAnswer['steps']) =>
      of.map(({ document, kind }) => ({ kind, file: kind, bytes: Buffer.from(document) }));
    if (steps.length > 0) await this.#load((loader) => loader.advance(documents(steps)));
    else if (whole !== undefined && (whole.required || this.loader.position === undefined)) {
      const files = await model.filesOf(whole.revision, whole.files);
      await this.#load((loader) => loader.replace(files, documents(whole.steps)));
    }
    if (freshness !== undefined) await this.#load((loader) => loader.offerStatement(Buffer.from(freshness)));
  }

  breakGlass(statement: BreakGlassStatement): void {
    this.loader.setBreakGlass(statement);
  }

  /** Whether the freshness rule and the key table let a request of the key pass now. */
  allows(keyId: string): boolean {
    const { snapshot } = this.loader;
    const key = snapshot?.keys.get(keyId);
    const nowSeconds = this.#nowSeconds();
    if (snapshot === undefined || key?.kind !== 'derived_key' || key.status !== 'active') return false;
    if (!(nowSeconds < key.expiresAtSeconds)) return false;
    const { realtimeStalenessSeconds } = this.state.kind;
    return snapshot.routesByFreshness.some(({ rule }) => {
      const denial = checkFreshness(rule, snapshot, nowSeconds, realtimeStalenessSeconds);
      return denial === undefined || isAgeSuspended(denial, snapshot, nowSeconds);
    });
  }

  describe(): string {
    const { position, snapshot } = this.loader;
    const fresh = snapshot === undefined ? NOTHING : `${snapshot.freshAsOfSeconds} of ${this.#nowSeconds()}`;
    return `${JSON.stringify(this.state.kind)} at ${position?.revision}, fresh as of ${fresh}`;
  }
}

type Signers = ConstructorParameters<typeof BundleLoader>[0]['bundleSigners'];

export class Model {
  readonly control: ControlWorld;
  readonly bundleSigners: Signers;
  readonly freshnessSigners: Signers;
  readonly #random: Random;
  readonly #publisher: SitePublisher;
  readonly #issuer: FreshnessIssuer;
  distribution: Distribution;
  readonly #closed: Distribution[] = [];
  #issued = 0;
  #targets: TestTarget[] = [];
  #verifiers: ModelVerifier[] = [];
  /** Copies of state directories. */
  readonly #states: State[] = [];
  readonly #active: string[] = [];
  readonly #revoked: string[] = [];
  readonly #kinds: readonly Kind['kind'][];
  /** So small that instances give way to others. */
  readonly #maxInstances: number;

  private constructor(control: ControlWorld, random: Random, signers: readonly [Signers, Signers]) {
    const { clock, signingKeys, store } = control;
    this.control = control;
    this.#random = random;
    [this.bundleSigners, this.freshnessSigners] = signers;
    this.#publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
    this.#issuer = new FreshnessIssuer({ store, signingKeys, nowMs: clock.nowMs });
    this.#maxInstances = 1 + random.below(4);
    this.distribution = this.#newDistribution();
    // Half of the sites have no verifier without a limit.
    this.#kinds = random.below(2) === 0 ? ['signing', 'old', 'break_glass'] : ['signing'];
  }

  static async open(random: Random): Promise<Model> {
    const control = await ControlWorld.open();
    const signersOf = async (purpose: 'bundle' | 'freshness') => {
      const { clock, signingKeys } = control;
      const keys = await control.read((tx) => signingKeys.signers(tx, SITE, purpose, clock.ms));
      return { keys: keys.map(({ publicKey }) => publicKey), threshold: 1 };
    };
    const model = new Model(control, random, [await signersOf('bundle'), await signersOf('freshness')]);
    await control.change((tx) =>
      tx.hierarchy.advance(SITE, {
        skewSeconds: SKEW_SECONDS,
        bundleLifetimeSeconds: 120,
        wholeNeeded: 1,
      } as never),
    );
    await control.putClient('billing', { orders: 'write' });
    await model.changeRoutes();
    await model.addKey();
    await model.publish();
    model.#targets.push(await addTarget(control));
    for (let count = 0; count < 4; count++) await model.startVerifier();
    return model;
  }

  async close(): Promise<void> {
    for (const distribution of [...this.#closed, this.distribution]) await distribution.close();
    await this.control.close();
  }

  async addKey(): Promise<void> {
    this.#active.push(
      await this.control.addKey('billing', 30 + this.#random.below(this.#random.below(2) === 0 ? 60 : 1000)),
    );
  }

  async changeRoutes(): Promise<void> {
    const staleness = 1 + this.#random.below(60);
    const { max_staleness_seconds: _, ...route } = ORDERS_READ;
    const isBounded = this.#random.below(2) === 0;
    const limit = isBounded || this.#random.below(2) === 0 ? { max_staleness_seconds: staleness } : {};
    await this.control.putRoute({ ...route, ...limit, freshness_class: isBounded ? 'bounded' : 'realtime' });
  }

  async publish(): Promise<void> {
    for (;;) {
      const outcome = await this.#publisher.publishChanges();
      if (outcome === 'done') return;
      if (outcome === 'whole_needed') await this.#publisher.publishWhole();
    }
  }

  /** A new one, or one with a copy of a state directory. */
  async startVerifier(): Promise<void> {
    const target = this.#pick(this.#targets);
    const kind = this.#pick(this.#kinds) ?? 'signing';
    // What it does not report is not limited by what others report.
    const realtimeStalenessSeconds = 1 + this.#random.below(kind === 'old' ? 200 : 20);
    const fresh = { kind: { realtimeStalenessSeconds, kind }, loads: [] };
    const restored = this.#random.below(2) === 0 ? this.#pick(this.#states) : undefined;
    if (target === undefined && restored === undefined) return;
    const state = restored ?? (target && { ...fresh, target });
    if (state === undefined) return;
    const most = SKEW_SECONDS * 1000;
    // The faults are at the ends.
    const aheadMs = this.#pick([-most, -most, most, this.#random.below(2 * most) - most]) ?? 0;
    const verifier = new ModelVerifier(this, state, aheadMs);
    await verifier.start();
    this.#verifiers.push(verifier);
  }

  async filesOf(revision: number, files: readonly { readonly name: string }[]): Promise<ResolvedDirectory> {
    const rows = await this.control.read((tx) => tx.distribution.files(SITE, revision));
    const contents = new Map<string, Buffer>();
    for (const { name } of files) {
      const sha256 = rows.find((row) => row.name === name)?.sha256 ?? '';
      const content = await this.control.read((tx) => tx.distribution.blob(SITE, sha256));
      if (content !== undefined) contents.set(name, content);
    }
    const readBundle = async () => contents.get('bundle.jws') ?? Buffer.alloc(0);
    return { readBundle } as unknown as ResolvedDirectory;
  }

  /** One random event. */
  async step(): Promise<void> {
    const verifier = this.#pick(this.#verifiers);
    const dice = this.#random.below(100);
    if (this.#random.below(4) === 0) this.#breakGlass(verifier);
    if (dice < 26)
      await verifier?.poll(
        this,
        this.#pick(['nothing', 'nothing', 'answer', 'acknowledgement']) ?? 'nothing',
      );
    else if (dice < 34) this.#pass();
    else if (dice < 46) await this.#passToAnEnd();
    else if (dice < 54) await this.#issueFreshness();
    else if (dice < 62) await this.publish();
    else if (dice < 70) await this.#revoke();
    else if (dice < 74) await this.addKey();
    else if (dice < 80) await this.changeRoutes();
    else if (dice < 88) await this.startVerifier();
    else if (dice < 91) this.#verifiers = this.#verifiers.filter((other) => other !== verifier);
    else if (dice < 96 && verifier !== undefined) this.#states.push(verifier.saved());
    else if (dice < 98) await this.#scale();
    else await this.#restartControl();
  }

  async #issueFreshness(): Promise<void> {
    this.#issued += 3_600_000;
    await this.#issuer.issueDue(this.#issued);
  }

  #pass(): void {
    this.control.clock.ms += this.#random.below(this.#random.below(4) === 0 ? 90_000 : 8000);
  }

  /** To the second of a pending receipt's end, or the one before. */
  async #passToAnEnd(): Promise<void> {
    const keyId = this.#pick(this.#revoked);
    const end = keyId === undefined ? undefined : (await this.#receipt(keyId)).no_use_from;
    const endMs = ((end ?? 0) - this.#random.below(2)) * 1000;
    const { clock } = this.control;
    if (endMs > clock.ms && endMs - clock.ms < 200_000) clock.ms = endMs;
  }

  async #revoke(): Promise<void> {
    const keyId = this.#active.shift();
    if (keyId === undefined) return;
    this.#revoked.push(keyId);
    await this.control.revokeKey(keyId);
    if (this.#random.below(4) > 0) await this.publish();
  }

  #breakGlass(verifier: ModelVerifier | undefined): void {
    const position = verifier?.loader.position;
    if (verifier?.state.kind.kind !== 'break_glass' || position === undefined) return;
    const { seconds } = this.control.clock;
    verifier.breakGlass({ ...position, fromSeconds: seconds - 3600, untilSeconds: seconds + 86_400 });
  }

  async #scale(): Promise<void> {
    const gone = this.#targets.length > 1 ? this.#targets.shift() : undefined;
    if (gone !== undefined) await detach(this.control, gone.id);
    this.#targets.push(await addTarget(this.control));
  }

  #newDistribution(): Distribution {
    const { clock, store } = this.control;
    return new Distribution({ store, nowMs: clock.nowMs, maxInstances: this.#maxInstances });
  }

  /** What it did not write is lost, or it writes what is left. */
  async #restartControl(): Promise<void> {
    const isLost = this.#random.below(2) === 0;
    if (isLost) this.#closed.push(this.distribution);
    else await this.distribution.close();
    for (const verifier of this.#verifiers) {
      if (!isLost && verifier.isUnwritten && verifier.state.kind.kind !== 'old') verifier.isKnown = true;
      verifier.isUnwritten = false;
    }
    this.distribution = this.#newDistribution();
  }

  /** @returns what contradicts a receipt, or that all targets have a revocation; undefined when nothing does */
  async contradiction(): Promise<string | undefined> {
    return (await this.#receiptContradiction()) ?? (await this.#heldContradiction());
  }

  /** Whether all targets have a revocation although a verifier that Control knows allows the key. */
  async #heldContradiction(): Promise<string | undefined> {
    const { clock } = this.control;
    const held = await this.control.read((tx) => tx.propagation.heldByAll(SITE, clock.ms));
    const known = this.#verifiers.filter(
      ({ isKnown, state }) => isKnown && this.#targets.includes(state.target),
    );
    for (const keyId of this.#revoked) {
      const key = await this.control.read((tx) => tx.keys.find(keyId));
      if (held.attached > 0 && held.revision < (key?.revokedRevision ?? Number.POSITIVE_INFINITY)) continue;
      const allowing = known.find((verifier) => verifier.allows(keyId));
      if (allowing !== undefined) return `${allowing.describe()} contradicts ${JSON.stringify(held)}`;
    }
    return undefined;
  }

  async #receiptContradiction(): Promise<string | undefined> {
    for (const keyId of this.#revoked) {
      const allowing = this.#verifiers.find((verifier) => verifier.allows(keyId));
      if (allowing === undefined) continue;
      const receipt = await this.#receipt(keyId);
      if (receipt.state === 'effective')
        return `${allowing.describe()} contradicts ${JSON.stringify(receipt)}`;
    }
    return undefined;
  }

  /** Number of receipts that are effective although the key has not ended. */
  async effective(): Promise<number> {
    let count = 0;
    for (const keyId of this.#revoked) {
      const { issued_at, key_expires_at, state } = await this.#receipt(keyId);
      if (state === 'effective' && issued_at < key_expires_at) count += 1;
    }
    return count;
  }

  #receipt(keyId: string): Promise<RevocationReceipt> {
    const { clock } = this.control;
    return this.control.read(async (tx) => {
      const key = await tx.keys.find(keyId);
      if (key === undefined) throw new Error('no key');
      return receiptOf(tx, key, clock.ms);
    });
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[this.#random.below(list.length)];
  }
}
