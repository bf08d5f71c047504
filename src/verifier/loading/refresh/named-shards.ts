/**
 * Reads which shards a fetched bundle names, before any shard is fetched. A server that impersonates Control may offer
 * a hundred large files, but has no key that signs a bundle.
 */

import { BundleError } from '../../../bundle/format/bundle-error.ts';
import { MAX_BUNDLE_BYTES } from '../../../bundle/format/documents.ts';
import { BUNDLE_FILE } from '../../../bundle/format/file-names.ts';
import { readRegularFile } from '../../../bundle/format/files.ts';
import { type OpenOptions, openBundleInSteps } from '../../../bundle/format/open-bundle.ts';
import { TimeSlice } from '../../../bundle/format/time-slice.ts';

export type BundleTrust = Pick<OpenOptions, 'signers' | 'authSite'>;

/**
 * @param directory with `bundle.jws`
 * @returns SHA-256 by name; empty for an invalid bundle, whose error the loader reports
 */
export async function namedShards(
  directory: string,
  trust: BundleTrust,
): Promise<ReadonlyMap<string, string>> {
  const bytes = await readRegularFile({ directory, file: BUNDLE_FILE, maxBytes: MAX_BUNDLE_BYTES });
  try {
    const opened = await new TimeSlice().run(openBundleInSteps(bytes, { ...trust, file: BUNDLE_FILE }));
    return new Map((opened.content.key_shards ?? []).map(({ file, sha256 }) => [file, sha256]));
  } catch (error) {
    if (error instanceof BundleError) return new Map();
    throw error;
  }
}
