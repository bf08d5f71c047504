/**
 * The loaded bundle and the two ways to change it: a whole bundle and the steps found with it replace it, or steps
 * update it. A document that is rejected leaves the loaded bundle unchanged.
 * Source: docs/design/bundle.md "Life in the verifier" and "Revision and head".
 */

import { AcceptedKeys } from '../../bundle/compile/accepted-keys.ts';
import { compileBundle, type LiveSnapshot } from '../../bundle/compile/compile.ts';
import { prepareStep } from '../../bundle/compile/compile-delta.ts';
import { reusingKeysOf } from '../../bundle/compile/compile-keys.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { asBundleError, type BundleError, bundleError } from '../../bundle/format/bundle-error.ts';
import { type ChainPosition, checkChainAgainstMark } from '../../bundle/format/chain.ts';
import { BUNDLE_FILE, type StepKind } from '../../bundle/format/file-names.ts';
import type { ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import {
  type OpenedBundle,
  type OpenedStep,
  openBundleInSteps,
  type StepDocument,
} from '../../bundle/format/open-document.ts';
import { TimeSlice } from '../../bundle/format/time-slice.ts';
import { importPublicKey } from '../../protocol/import-public-key.ts';
import {
  type BundleSource,
  beforeExpiry,
  type ChainTrust,
  type FoundChain,
  judgeExpiry,
  openNext,
  type Walk,
  walkChain,
} from './state/found-chain.ts';
import type { HighWaterMark } from './state/high-water-mark.ts';
import type { PersistedBundle } from './state/persisted-bundle.ts';

export interface ActiveBundleOptions extends ChainTrust {
  readonly mark: HighWaterMark;
  /** Whole seconds since the epoch, rounded down. */
  readonly nowSeconds: () => number;
  /** The verifier's own conditions, checked at every load: a reason rejects the snapshot, undefined accepts it. */
  readonly acceptSnapshot?: ((snapshot: Snapshot) => string | undefined) | undefined;
  /**
   * Raises the mark for a whole bundle, just before requests are decided by it, with what must happen before and after that.
   * An error rejects the bundle.
   */
  readonly raising?: ((snapshot: Snapshot, raise: () => Promise<void>) => Promise<void>) | undefined;
  /** Where steps are recorded before they are used. Without it only the mark remembers them. */
  readonly persisted?: PersistedBundle | undefined;
  /** Called after each change. Must not throw. */
  readonly onChange: (change: BundleChange) => void;
}

/** A change of the loaded bundle. */
export interface BundleChange {
  readonly source: BundleSource;
  /** From the first byte of the file to the swap. */
  readonly durationMs: number;
  /** Kinds of the steps that were applied; undefined when a whole bundle was loaded. */
  readonly steps?: readonly StepKind[];
}

/** Expired derived keys are kept for five minutes, so that `key_expired` differs from `key_unknown`. */
const LAPSED_KEYS_KEPT_SECONDS = 300;

/** Holds the current snapshot. Callers must not overlap calls that change it. */
export class ActiveBundle {
  readonly #options: ActiveBundleOptions;
  #acceptedKeys = new AcceptedKeys();
  #snapshot: LiveSnapshot | undefined;
  #source: BundleSource | undefined;
  #loadedAtSeconds: number | undefined;

  constructor(options: ActiveBundleOptions) {
    this.#options = options;
  }

  get snapshot(): LiveSnapshot | undefined {
    return this.#snapshot;
  }

  get source(): BundleSource | undefined {
    return this.#source;
  }

  /** When the whole bundle was loaded. */
  get loadedAtSeconds(): number | undefined {
    return this.#loadedAtSeconds;
  }

  /** Replaces the snapshot with one of the same content, after a freshness or break-glass statement. */
  restate(snapshot: LiveSnapshot): void {
    this.#snapshot = snapshot;
  }

  /** Removes expired derived keys, at most `most`, so that a call takes little time. */
  forgetLapsedKeys(most: number): void {
    this.#snapshot?.keys.forgetLapsed(this.#forgetBeforeSeconds(), most);
  }

  #forgetBeforeSeconds(): number {
    return this.#options.nowSeconds() - LAPSED_KEYS_KEPT_SECONDS;
  }

  /** Verifies a whole bundle. @throws BundleError */
  open(bytes: Buffer): Promise<OpenedBundle> {
    const { authSite, bundleSigners: signers } = this.#options;
    return new TimeSlice().run(openBundleInSteps(bytes, { file: BUNDLE_FILE, signers, authSite }));
  }

  /**
   * @returns why the steps after the last applied one were rejected
   * @throws BundleError when nothing of the chain is accepted
   */
  async load(found: FoundChain): Promise<BundleError | undefined> {
    const startedMs = performance.now();
    const { mark, raising = (_, raise) => raise() } = this.#options;
    // Nothing can be loaded while the mark cannot be read, so fail before the work.
    if (this.#snapshot === undefined) await mark.position();
    const bytes = await found.files.readBundle();
    const opened = await this.open(bytes);
    const walk = await walkChain(opened.position, found, this.#options);
    const known = this.#placeOf(walk, found.source);
    // Valid, but older than what another source delivered.
    if (known === 'superseded') return undefined;
    if (known !== undefined) return this.#goOn(found, walk, known);
    await this.#judge(walk.positions, walk.refused);
    const compiled = await this.compile(opened, found.files);
    const { snapshot, taken, refused } = await this.#applySteps(compiled, walk, found);
    const [base, ...steps] = walk.positions;
    if (taken < steps.length) await this.#judge([base, ...steps.slice(0, taken)], refused);
    const expired = judgeExpiry(this.#snapshot, snapshot, this.#options.nowSeconds());
    if (expired !== undefined) throw refused ?? expired;
    await found.keep?.({ opened, bytes, positions: steps.slice(0, taken) });
    // Before the swap: a bundle that requests were decided from must be in the mark.
    await raising(snapshot, () => mark.raise(snapshot));
    this.#acceptedKeys = new AcceptedKeys();
    this.#snapshot = snapshot;
    this.#source = found.source;
    this.#loadedAtSeconds = this.#options.nowSeconds();
    this.#options.onChange({ source: found.source, durationMs: performance.now() - startedMs });
    return refused;
  }

  /** Applies every rule to a whole bundle and changes nothing. @throws BundleError */
  async compile(opened: OpenedBundle, files: ResolvedDirectory): Promise<LiveSnapshot> {
    const keys = this.#acceptedKeys.begin();
    const snapshot = await compileBundle(opened.content, {
      file: BUNDLE_FILE,
      head: opened.position.head,
      readShard: (file) => files.readShard(file),
      importKey: reusingKeysOf(this.#snapshot?.keys, keys.importKey),
      forgetBeforeSeconds: this.#forgetBeforeSeconds(),
    });
    const refusal = this.#options.acceptSnapshot?.(snapshot);
    if (refusal !== undefined) throw bundleError('refused_by_policy', BUNDLE_FILE, '', refusal);
    keys.succeeded();
    return snapshot;
  }

  /** The loaded position's index on the chain; undefined when it is not on the chain. */
  #placeOf({ positions }: Walk, source: BundleSource): number | 'superseded' | undefined {
    const loaded = this.#snapshot;
    if (loaded === undefined) return undefined;
    const index = positions.findIndex(
      ({ revision, head }) => revision === loaded.revision && head === loaded.head,
    );
    if (index !== -1) return index;
    const end = positions.at(-1);
    const isOlder = end !== undefined && end.revision < loaded.revision;
    return isOlder && source === 'directory' && source !== this.#source ? 'superseded' : undefined;
  }

  async #goOn(found: FoundChain, walk: Walk, from: number): Promise<BundleError | undefined> {
    const documents: StepDocument[] = [];
    let index = 0;
    for await (const document of found.steps(walk.positions[0].revision)) {
      if (index >= from && index < walk.positions.length - 1) documents.push(document);
      index++;
    }
    const refused = documents.length === 0 ? undefined : await this.advance(documents, found.source);
    return refused ?? walk.refused;
  }

  /** @throws BundleError when the mark forbids the chain; prefers the error that cut the chain short */
  async #judge(positions: Walk['positions'], cutBy: BundleError | undefined): Promise<void> {
    const verdict = checkChainAgainstMark(await this.#options.mark.position(), positions, BUNDLE_FILE);
    if (verdict.kind === 'refuse') throw cutBy ?? verdict.error;
  }

  /** Changes a table that is not in use yet, so that nothing has to be undone. */
  async #applySteps(compiled: LiveSnapshot, walk: Walk, found: FoundChain) {
    const most = walk.positions.length - 1;
    let snapshot = compiled;
    let taken = 0;
    const slice = new TimeSlice();
    try {
      for await (const document of found.steps(compiled.revision)) {
        if (taken >= most) break;
        const prepared = await this.#prepare(snapshot, openNext(snapshot, document, this.#options), slice);
        snapshot = prepared.commit();
        taken++;
        if (slice.isUsedUp) await slice.next();
      }
      return { snapshot, taken, refused: walk.refused };
    } catch (error) {
      return { snapshot, taken, refused: asBundleError(error, BUNDLE_FILE) };
    }
  }

  #prepare(snapshot: LiveSnapshot, step: OpenedStep, slice: TimeSlice) {
    return prepareStep(snapshot, step, {
      importKey: reusingKeysOf(snapshot.keys, importPublicKey),
      forgetBeforeSeconds: this.#forgetBeforeSeconds(),
      slice,
    });
  }

  /**
   * Applies as many steps as continue the loaded bundle and are valid.
   * @returns why the rest was rejected
   */
  async advance(documents: readonly StepDocument[], source: BundleSource): Promise<BundleError | undefined> {
    const startedMs = performance.now();
    const before = this.#snapshot;
    if (before === undefined) return bundleError('chain_broken', BUNDLE_FILE, '', 'nothing is loaded yet');
    const { steps: opened, refused: notOpened } = this.#openAll(before, documents);
    const { steps, refused: expired } = beforeExpiry(before, opened, this.#options.nowSeconds());
    const { taken, refused: notTaken } = await this.#take(steps);
    if (taken > 0) {
      this.#source = source;
      const kinds = steps.slice(0, taken).map(({ step }) => step.kind);
      const durationMs = performance.now() - startedMs;
      this.#options.onChange({ source, durationMs, steps: kinds });
    }
    return notTaken ?? expired ?? notOpened;
  }

  #openAll(from: ChainPosition, documents: readonly StepDocument[]) {
    const steps: OpenedDocument[] = [];
    let position = from;
    try {
      for (const document of documents) {
        const step = openNext(position, document, this.#options);
        steps.push({ step, bytes: document.bytes });
        position = step.position;
      }
      return { steps, refused: undefined };
    } catch (error) {
      return { steps, refused: asBundleError(error, BUNDLE_FILE) };
    }
  }

  async #take(
    steps: readonly OpenedDocument[],
  ): Promise<{ taken: number; refused: BundleError | undefined }> {
    const { mark, persisted } = this.#options;
    let taken = 0;
    let recorded = 0;
    try {
      await persisted?.append(steps.map(({ step, bytes }) => ({ document: bytes, position: step.position })));
      recorded = persisted === undefined ? 0 : steps.length;
      const slice = new TimeSlice();
      for (const { step } of steps) {
        const snapshot = this.#snapshot;
        if (snapshot === undefined) break;
        const prepared = await this.#prepare(snapshot, step, slice);
        // The record already holds each step, so the mark may wait for the last one.
        if (recorded === 0 || taken === steps.length - 1) await mark.raise(step.position);
        this.#snapshot = prepared.commit();
        taken++;
      }
      return { taken, refused: undefined };
    } catch (error) {
      const refused = asBundleError(error, BUNDLE_FILE);
      await this.#undoRecord(recorded - taken);
      return { taken, refused };
    }
  }

  /** A step that cannot be dropped is rejected again at the next start. */
  async #undoRecord(count: number): Promise<void> {
    const { mark, persisted } = this.#options;
    if (count <= 0 || this.#snapshot === undefined) return;
    try {
      await persisted?.dropLast(count);
      await mark.raise(this.#snapshot);
    } catch {
      // Report the step's own error rather than this one.
    }
  }
}

interface OpenedDocument {
  readonly step: OpenedStep;
  readonly bytes: Buffer;
}
