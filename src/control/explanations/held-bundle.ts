/**
 * Compiles a published bundle that Control still holds, as a verifier does: signatures, chain, deltas and links. Nothing is
 * cached, because a site's keys may take hundreds of megabytes.
 * Source: docs/design/bundle.md "Life in the verifier".
 */
import { compileBundle } from '../../bundle/compile/compile.ts';
import { prepareStep } from '../../bundle/compile/compile-delta.ts';
import { applyFreshness, openFreshness } from '../../bundle/compile/freshness-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { BundleError, describeFault } from '../../bundle/format/bundle-error.ts';
import { MAX_STEPS } from '../../bundle/format/bundle-limits.ts';
import { judgeStep } from '../../bundle/format/chain.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE, FRESHNESS_FILE, stepFile } from '../../bundle/format/file-names.ts';
import { openBundleInSteps, openStep } from '../../bundle/format/open-document.ts';
import { TimeSlice } from '../../bundle/format/time-slice.ts';
import { importPublicKey } from '../../protocol/import-public-key.ts';
import { parsePublicJwk } from '../../protocol/public-key.ts';
import type { ExplainedBundle } from '../../verifier/decision/explain/report.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export interface WantedBundle {
  readonly siteId: string;
  /** Undefined for `preferred` if Control holds it, otherwise the newest. */
  readonly revision: number | undefined;
  readonly preferred: number | undefined;
  readonly nowSeconds: number;
}

/** @throws ApiProblem `not_found`, `revision_not_held` */
export async function heldBundle(store: ControlStore, wanted: WantedBundle): Promise<ExplainedBundle> {
  const { siteId, nowSeconds } = wanted;
  const published = await store.read((tx) => findRevision(tx, wanted));
  try {
    const snapshot = await compileChain(store, siteId, published);
    const warnings = snapshot.warnings.map((fault) => `${fault.code}: ${describeFault(fault)}`);
    return { ...freshen(snapshot, siteId, published, nowSeconds), signatures: 'valid', warnings };
  } catch (error) {
    // A publication may have removed the documents meanwhile.
    const isLost = error instanceof BundleError && !(await store.read((tx) => isHeld(tx, siteId, published)));
    throw isLost ? new ApiProblem('revision_not_held') : error;
  }
}

/** The published documents of the revision without its large files. */
interface PublishedRevision {
  readonly revision: number;
  readonly baseRevision: number;
  readonly files: ReadonlyMap<string, string>;
  readonly signers: Signers;
  readonly freshnessSigners: Signers;
  /** The newest freshness statement, which is about the newest revision. */
  readonly freshness: RowOf<'freshness'> | undefined;
  /** When the next revision was published. */
  readonly replacedAtMs: number | undefined;
}

async function findRevision(tx: Transaction, wanted: WantedBundle): Promise<PublishedRevision> {
  const { siteId, preferred } = wanted;
  const site = await tx.sites.find(siteId);
  if (site === undefined) throw new ApiProblem('not_found');
  const candidates =
    wanted.revision === undefined ? [preferred ?? site.revision, site.revision] : [wanted.revision];
  const bases = await tx.publication.bases(siteId);
  for (const revision of candidates) {
    const base = bases.find((candidate) => candidate.revision <= revision);
    if (base === undefined || (await tx.distribution.step(siteId, revision)) === undefined) continue;
    const files = await tx.distribution.files(siteId, base.revision);
    const [next] = await tx.distribution.stepsAfter(siteId, revision, 1);
    const keys = await tx.signingKeys.ofSite(siteId);
    return {
      revision,
      baseRevision: base.revision,
      files: new Map(files.map(({ name, sha256 }) => [name, sha256])),
      signers: signersOf(keys, 'bundle'),
      freshnessSigners: signersOf(keys, 'freshness'),
      freshness: await tx.distribution.freshness(siteId),
      replacedAtMs: next?.publishedAtMs,
    };
  }
  throw new ApiProblem('revision_not_held', bases.length === 0 ? 'nothing is published yet' : undefined);
}

async function isHeld(
  tx: Transaction,
  siteId: string,
  { baseRevision }: PublishedRevision,
): Promise<boolean> {
  return (await tx.publication.bases(siteId)).some(({ revision }) => revision === baseRevision);
}

/** Includes retired keys, because they signed older documents. */
function signersOf(rows: readonly RowOf<'signingKey'>[], purpose: RowOf<'signingKey'>['purpose']): Signers {
  const keys = rows
    .filter((row) => row.purpose === purpose)
    .flatMap(({ publicJwk }) => {
      const jwk = parsePublicJwk(JSON.parse(publicJwk));
      const key = jwk && importPublicKey(jwk);
      return key === undefined ? [] : [key];
    });
  return { keys, threshold: 1 };
}

async function compileChain(
  store: ControlStore,
  siteId: string,
  published: PublishedRevision,
): Promise<Snapshot> {
  const { signers } = published;
  const slice = new TimeSlice();
  const readFile = async (name: string) => {
    const sha256 = published.files.get(name) ?? '';
    const content = await store.read((tx) => tx.distribution.blob(siteId, sha256));
    if (content === undefined) throw new ApiProblem('revision_not_held');
    return content;
  };
  const options = { signers, authSite: siteId };
  const bundle = await readFile(BUNDLE_FILE);
  const { content, position } = await slice.run(openBundleInSteps(bundle, { ...options, file: BUNDLE_FILE }));
  let snapshot = await compileBundle(content, {
    file: BUNDLE_FILE,
    head: position.head,
    readShard: readFile,
  });
  for await (const { document, kind, revision } of stepsOf(store, siteId, published)) {
    if (kind === 'bundle') throw new ApiProblem('revision_not_held');
    const file = stepFile(kind, revision);
    const step = openStep(kind, Buffer.from(document), { ...options, file });
    const fault = judgeStep(snapshot, step, file);
    if (fault !== undefined) throw fault;
    snapshot = (await prepareStep(snapshot, step, { importKey: importPublicKey, slice })).commit();
  }
  if (snapshot.revision !== published.revision) throw new ApiProblem('revision_not_held');
  return snapshot;
}

async function* stepsOf(store: ControlStore, siteId: string, { baseRevision, revision }: PublishedRevision) {
  for (let from = baseRevision; from < revision; ) {
    const page = await store.read((tx) => tx.distribution.stepsAfter(siteId, from, MAX_STEPS));
    const steps = page.filter((step) => step.revision <= revision);
    yield* steps;
    from = steps.length === page.length ? (page.at(-1)?.revision ?? revision) : revision;
  }
}

/**
 * Freshness statements of earlier revisions are gone. Control stated such a revision again and again until it published the
 * next.
 */
function freshen(
  snapshot: Snapshot,
  siteId: string,
  { freshness, freshnessSigners: signers, replacedAtMs }: PublishedRevision,
  nowSeconds: number,
): { readonly snapshot: Snapshot } {
  if (replacedAtMs !== undefined) {
    const freshAsOfSeconds = Math.max(snapshot.freshAsOfSeconds, Math.floor(replacedAtMs / 1000));
    return { snapshot: { ...snapshot, freshAsOfSeconds } };
  }
  if (freshness === undefined) return { snapshot };
  const file = FRESHNESS_FILE;
  const statement = openFreshness(Buffer.from(freshness.document), { file, signers, authSite: siteId });
  const step = applyFreshness(snapshot, statement, nowSeconds);
  return {
    snapshot: step.kind === 'accept' ? { ...snapshot, freshAsOfSeconds: step.freshAsOfSeconds } : snapshot,
  };
}
