/** Directories with bundles, removed after the test. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import { DOCUMENTS, signDocument } from '../../../src/bundle/format/documents.ts';
import { positionOf } from '../../../src/bundle/format/open-document.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';

const made: string[] = [];

afterEach(async () => {
  await Promise.all(made.splice(0).map((path) => rm(path, { recursive: true, force: true })));
});

export async function newDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'proofgate-bundle-'));
  made.push(path);
  return path;
}

/** A `bundle.jws` with any content, valid or not, signed as usual. */
export function bundleDocument(content: BundleContent, key: SigningKey) {
  const payload = Buffer.from(JSON.stringify(content));
  return {
    bytes: signDocument(DOCUMENTS.bundle.type, payload, [key]),
    position: positionOf(content, payload, 'bundle.jws'),
  };
}

export function freshnessDocument(
  statement: { authSite: string; revision: number; head: string; asOfSeconds: number },
  key: SigningKey,
): Buffer {
  const { authSite, revision, head, asOfSeconds } = statement;
  const payload = { auth_site: authSite, revision, head, as_of: formatTime(asOfSeconds) };
  return signDocument(DOCUMENTS.freshness.type, Buffer.from(JSON.stringify(payload)), [key]);
}

/** Writes a bundle and returns its position. */
export async function putBundle(directory: string, content: BundleContent, key: SigningKey) {
  const { bytes, position } = bundleDocument(content, key);
  await writeFile(join(directory, 'bundle.jws'), bytes);
  return position;
}
