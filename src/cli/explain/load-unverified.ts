/** Loads a bundle without checking signatures, for a user without the keys. The caller must show a warning. */
import { compileBundle } from '../../bundle/compile/compile.ts';
import { applyFreshness } from '../../bundle/compile/freshness-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import {
  MAX_BUNDLE_BYTES,
  MAX_FRESHNESS_BYTES,
  parsePayload,
  readDocument,
} from '../../bundle/format/documents.ts';
import { BUNDLE_FILE, FRESHNESS_FILE } from '../../bundle/format/file-names.ts';
import { LocalDirectory, type ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import { positionOf } from '../../bundle/format/open-bundle.ts';
import { asBundleContent, asFreshnessContent } from '../../bundle/format/shape.ts';
import { parseTime } from '../../bundle/format/times.ts';
import { usageError } from '../../program/errors.ts';
import type { ExplainSettings } from './explain-settings.ts';
import { type LoadedBundle, warningsOf } from './loaded-bundle.ts';

/** @throws CliError `bundle_key_missing`; BundleError */
export async function loadUnverified({ bundle, stateDir }: ExplainSettings): Promise<LoadedBundle> {
  if (bundle === undefined || stateDir !== undefined) {
    throw usageError('bundle_key_missing', '--unverified-bundle is for --bundle alone: give --bundle-key');
  }
  return new LocalDirectory(bundle).read(async (files) => {
    const document = { file: BUNDLE_FILE, bytes: await files.readBundle(), maxBytes: MAX_BUNDLE_BYTES };
    const { payload } = readDocument(document);
    const content = asBundleContent(parsePayload(payload, BUNDLE_FILE), BUNDLE_FILE);
    const { head, revision } = positionOf(content, payload, BUNDLE_FILE);
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
  const { payload } = readDocument({ file: FRESHNESS_FILE, bytes, maxBytes: MAX_FRESHNESS_BYTES });
  const { as_of, head, revision } = asFreshnessContent(parsePayload(payload, FRESHNESS_FILE), FRESHNESS_FILE);
  const statement = { head, revision, asOfSeconds: parseTime(as_of) ?? 0 };
  const step = applyFreshness(snapshot, statement, Math.floor(Date.now() / 1000));
  return step.kind === 'accept' ? { ...snapshot, freshAsOfSeconds: step.freshAsOfSeconds } : snapshot;
}
