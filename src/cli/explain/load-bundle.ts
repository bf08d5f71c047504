/** Loads the bundle for `explain` as a verifier does. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_BUNDLE_BYTES, parsePayload, readDocument, type Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE, CURRENT_LINK } from '../../bundle/format/file-names.ts';
import { LocalDirectory } from '../../bundle/format/local-directory.ts';
import { usageError } from '../../program/errors.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import { BundleLoader } from '../../verifier/loading/bundle-loader.ts';
import { FileMark, MemoryMark } from '../../verifier/loading/high-water-mark.ts';
import { PersistedBundle } from '../../verifier/loading/state/persisted-bundle.ts';
import { readBundleKeys, readTrustedSigners } from '../bundle/bundle-flags.ts';
import { copyStateDirectory } from './copy-state.ts';
import type { ExplainSettings } from './explain-settings.ts';
import { loadUnverified } from './load-unverified.ts';
import { type LoadedBundle, warningsOf } from './loaded-bundle.ts';

/**
 * @param momentSeconds the explained moment: keys that expired after it are kept
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
  const persisted = stateCopy === undefined ? undefined : new PersistedBundle(stateCopy);
  const loader = new BundleLoader({
    authSite,
    directory: settings.bundle,
    persisted,
    bundleSigners: signers,
    freshnessSigners,
    mark: stateCopy === undefined ? new MemoryMark() : new FileMark({ stateDirectory: stateCopy, authSite }),
    nowSeconds: () => momentSeconds,
    // Accept freshness statements from after the moment: the ones of that time were overwritten, and without a statement
    // the bundle would look older than it was.
    statementNowSeconds: () => Math.floor(Date.now() / 1000),
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
    return { snapshot, signatures: 'hold', warnings };
  } finally {
    loader.close();
    await persisted?.close();
  }
}

/** The Auth Site of the bundle; loading then requires it in every document. */
async function claimedSite(directory: string | undefined, stateCopy: string | undefined): Promise<string> {
  const path = directory ?? join(stateCopy ?? '', CURRENT_LINK);
  const bytes = await new LocalDirectory(path).read((files) => files.readBundle());
  const { payload } = readDocument({ file: BUNDLE_FILE, bytes, maxBytes: MAX_BUNDLE_BYTES });
  const content = parsePayload(payload, BUNDLE_FILE);
  const site = isJsonObject(content) ? content.auth_site : undefined;
  return typeof site === 'string' ? site : '';
}
