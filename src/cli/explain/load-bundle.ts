/** The bundle to explain by, loaded as a verifier loads it. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  applyFreshness,
  type FreshnessOptions,
  type FreshnessStatement,
  openFreshness,
} from '../../bundle/compile/freshness-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { MAX_BUNDLE_BYTES, parsePayload, readDocument, type Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE, CURRENT_LINK, FRESHNESS_FILE } from '../../bundle/format/file-names.ts';
import { LocalDirectory } from '../../bundle/format/local-directory.ts';
import { usageError } from '../../program/errors.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import { FileMark, MemoryMark } from '../../verifier/loading/high-water-mark.ts';
import { BundleLoader } from '../../verifier/loading/holder.ts';
import { PersistedBundle } from '../../verifier/loading/state/kept-chain.ts';
import { StateDirectory } from '../../verifier/loading/state/state-directory.ts';
import { readBundleKeys, readTrustedSigners } from '../bundle/bundle-flags.ts';
import { copyStateDirectory } from './copy-state.ts';
import type { ExplainSettings } from './explain-settings.ts';
import { loadUnverified } from './load-unverified.ts';
import { type LoadedBundle, warningsOf } from './loaded-bundle.ts';

/**
 * @param momentSeconds what is explained: keys that lapsed since then are still there
 * @throws CliError, BundleError
 */
export async function loadBundle(settings: ExplainSettings, momentSeconds: number): Promise<LoadedBundle> {
  const { bundle, stateDir, unverifiedBundle } = settings;
  if (bundle === undefined && stateDir === undefined) {
    throw usageError('bundle_source_missing', 'give --bundle, --state-dir or both');
  }
  const signers = await readTrustedSigners(settings);
  if (unverifiedBundle) return loadUnverified(settings);
  if (signers === undefined) {
    const text = 'give --bundle-key, as the verifier has it; or --unverified-bundle to trust the files';
    throw usageError('bundle_key_missing', text);
  }
  if (stateDir === undefined) return loadVerified({ settings, momentSeconds, signers, stateCopy: undefined });
  const stateCopy = await copyStateDirectory(stateDir);
  try {
    return await loadVerified({ settings, momentSeconds, signers, stateCopy });
  } finally {
    await rm(stateCopy, { recursive: true, force: true });
  }
}

interface VerifiedLoad {
  readonly settings: ExplainSettings;
  readonly momentSeconds: number;
  readonly signers: Signers;
  readonly stateCopy: string | undefined;
}

async function loadVerified({
  settings,
  momentSeconds,
  signers,
  stateCopy,
}: VerifiedLoad): Promise<LoadedBundle> {
  const authSite = settings.authSite ?? (await claimedSite(settings.bundle, stateCopy));
  const freshnessKeys = await readBundleKeys(settings.freshnessKeys);
  const freshnessSigners = {
    keys: freshnessKeys.length > 0 ? freshnessKeys : signers.keys,
    threshold: settings.freshnessThreshold,
  };
  const persisted = stateCopy === undefined ? undefined : new PersistedBundle(new StateDirectory(stateCopy));
  const loader = new BundleLoader({
    authSite,
    directory: settings.bundle,
    persisted,
    bundleSigners: signers,
    freshnessSigners,
    mark: stateCopy === undefined ? new MemoryMark() : new FileMark({ stateDirectory: stateCopy, authSite }),
    nowSeconds: () => momentSeconds,
  });
  try {
    await loader.start();
    const { freshnessProblem, problem, snapshot } = loader.status();
    if (snapshot === undefined) {
      throw problem?.error ?? usageError('bundle_missing', 'no bundle is there: give --bundle');
    }
    const problems = [problem, freshnessProblem].flatMap((found) =>
      found === undefined ? [] : [`${found.error.code}: ${found.error.message}`],
    );
    const warnings = [...problems, ...warningsOf(snapshot)];
    const statements = { signers: freshnessSigners, authSite, file: FRESHNESS_FILE };
    const directories = statementDirectories(settings.bundle, stateCopy);
    return { snapshot: await freshen(snapshot, directories, statements), signatures: 'hold', warnings };
  } finally {
    loader.close();
    await persisted?.close();
  }
}

function statementDirectories(bundle: string | undefined, stateCopy: string | undefined): readonly string[] {
  return [
    ...(bundle === undefined ? [] : [bundle]),
    ...(stateCopy === undefined ? [] : [join(stateCopy, CURRENT_LINK)]),
  ];
}

/**
 * Statements that were made after the moment that is explained count too: those of then have been written over, and
 * without one a bundle would look older than it was.
 */
async function freshen(
  snapshot: Snapshot,
  directories: readonly string[],
  options: FreshnessOptions,
): Promise<Snapshot> {
  let freshest = snapshot;
  for (const directory of directories) {
    const bytes = await new LocalDirectory(directory).read((files) => files.readFreshness());
    const statement = bytes && openOrSkip(bytes, options);
    const step = statement && applyFreshness(freshest, statement, nowSeconds());
    if (step?.kind === 'accept') freshest = { ...freshest, freshAsOfSeconds: step.freshAsOfSeconds };
  }
  return freshest;
}

/** One that is refused has been told of already. */
function openOrSkip(bytes: Buffer, options: FreshnessOptions): FreshnessStatement | undefined {
  try {
    return openFreshness(bytes, options);
  } catch {
    return undefined;
  }
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Of the bundle that is there; the load then holds every document to it. */
async function claimedSite(directory: string | undefined, stateCopy: string | undefined): Promise<string> {
  const path = directory ?? join(stateCopy ?? '', CURRENT_LINK);
  const bytes = await new LocalDirectory(path).read((files) => files.readBundle());
  const { payload } = readDocument({ file: BUNDLE_FILE, bytes, maxBytes: MAX_BUNDLE_BYTES });
  const content = parsePayload(payload, BUNDLE_FILE);
  const site = isJsonObject(content) ? content.auth_site : undefined;
  return typeof site === 'string' ? site : '';
}
