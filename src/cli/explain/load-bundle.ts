/** Loads the bundle for `explain` as a verifier does. */
import { cp, mkdir, mkdtemp, readlink, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { compileBundle } from '../../bundle/compile/compile.ts';
import { applyFreshness } from '../../bundle/compile/freshness-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { describeFault } from '../../bundle/format/bundle-error.ts';
import { DOCUMENTS, parsePayload, readDocument, type Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE, CURRENT_LINK, FRESHNESS_FILE } from '../../bundle/format/file-names.ts';
import { LocalDirectory, type ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import { positionOf, readContent } from '../../bundle/format/open-document.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { ExplainedBundle } from '../../verifier/decision/explain/report.ts';
import { BundleLoader } from '../../verifier/loading/bundle-loader.ts';
import { FileMark, MARK_FILE, MemoryMark } from '../../verifier/loading/state/high-water-mark.ts';
import { BASES_FOLDER, PersistedBundle } from '../../verifier/loading/state/persisted-bundle.ts';
import { readBundleKeys, readTrustedSigners } from '../bundle/bundle-flags.ts';
import type { ExplainSettings } from './explain-settings.ts';

/**
 * @param momentSeconds the explained moment: keys that expired after it are kept
 * @throws CliError, BundleError
 */
export async function loadBundle(settings: ExplainSettings, momentSeconds: number): Promise<ExplainedBundle> {
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
}: VerifiedLoad): Promise<ExplainedBundle> {
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
    return { snapshot, signatures: 'valid', warnings };
  } finally {
    loader.close();
    await persisted?.close();
  }
}

/** The Auth Site of the bundle; loading then requires it in every document. */
async function claimedSite(directory: string | undefined, stateCopy: string | undefined): Promise<string> {
  const path = directory ?? join(stateCopy ?? '', CURRENT_LINK);
  const bytes = await new LocalDirectory(path).read((files) => files.readBundle());
  const { payload } = readDocument({ file: BUNDLE_FILE, bytes, ...DOCUMENTS.bundle });
  const content = parsePayload(payload, BUNDLE_FILE);
  const site = isJsonObject(content) ? content.auth_site : undefined;
  return typeof site === 'string' ? site : '';
}

/** @throws CliError `bundle_key_missing`; BundleError */
async function loadUnverified({ bundle, stateDir }: ExplainSettings): Promise<ExplainedBundle> {
  if (bundle === undefined || stateDir !== undefined) {
    throw usageError('bundle_key_missing', '--unverified-bundle is for --bundle alone: give --bundle-key');
  }
  return new LocalDirectory(bundle).read(async (files) => {
    const found = { file: BUNDLE_FILE, bytes: await files.readBundle() };
    const { content, document } = readContent('bundle', found, undefined);
    const { head, revision } = positionOf(content, document.payload, BUNDLE_FILE);
    const readShard = (file: string) => files.readShard(file);
    const snapshot = await compileBundle(content, { file: BUNDLE_FILE, head, readShard });
    const steps = await files.stepsAfter(revision);
    const skipped = `${steps.length} deltas or links beside the bundle were not applied: give --bundle-key`;
    return {
      snapshot: await freshenUnverified(snapshot, files),
      signatures: 'not_checked',
      warnings: [...(steps.length === 0 ? [] : [skipped]), ...warningsOf(snapshot)],
    };
  });
}

async function freshenUnverified(snapshot: Snapshot, files: ResolvedDirectory): Promise<Snapshot> {
  const bytes = await files.readFreshness();
  if (bytes === undefined) return snapshot;
  const { content } = readContent('freshness', { file: FRESHNESS_FILE, bytes }, undefined);
  const { as_of, head, revision } = content;
  const statement = { head, revision, asOfSeconds: parseTime(as_of) ?? 0 };
  const step = applyFreshness(snapshot, statement, Math.floor(Date.now() / 1000));
  return step.kind === 'accept' ? { ...snapshot, freshAsOfSeconds: step.freshAsOfSeconds } : snapshot;
}

const ATTEMPTS = 5;

/**
 * Copies a state directory, because a verifier may be using it and `explain` must not change it: the base with its steps and
 * freshness statement, and the mark. Repeats this when the base is replaced meanwhile.
 * @returns a directory that the caller removes
 * @throws CliError `bundle_missing`, `state_dir_unusable`
 */
async function copyStateDirectory(stateDirectory: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'proofgate-explain-'));
  for (let attempt = 1; ; attempt++) {
    try {
      await copyBase(stateDirectory, copy);
      return copy;
    } catch (error) {
      const code = systemErrorCode(error);
      if (attempt < ATTEMPTS && code === 'ENOENT' && (await hasBase(stateDirectory))) continue;
      await rm(copy, { recursive: true, force: true });
      if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EINVAL') {
        const text = `--state-dir ${stateDirectory} keeps no bundle; verifiers that follow Control keep one`;
        throw usageError('bundle_missing', text);
      }
      throw usageError(
        'state_dir_unusable',
        `--state-dir ${stateDirectory} cannot be read (${code ?? 'error'})`,
      );
    }
  }
}

async function hasBase(stateDirectory: string): Promise<boolean> {
  return readlink(join(stateDirectory, CURRENT_LINK)).then(
    () => true,
    () => false,
  );
}

async function copyBase(from: string, to: string): Promise<void> {
  const base = join(BASES_FOLDER, basename(await readlink(join(from, CURRENT_LINK))));
  await mkdir(join(to, BASES_FOLDER), { recursive: true });
  await cp(join(from, base), join(to, base), { recursive: true });
  await cp(join(from, MARK_FILE), join(to, MARK_FILE)).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  });
  await symlink(base, join(to, CURRENT_LINK));
}

function warningsOf({ warnings }: Snapshot): readonly string[] {
  return warnings.map((fault) => `${fault.code}: ${describeFault(fault)}`);
}
