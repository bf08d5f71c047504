/**
 * The high-water mark: the highest revision that a verifier ever accepted, with its head. Lower revisions are rejected
 * (`checkChainAgainstMark` of `bundle/format/chain.ts`), also after a restart. Stored in the state directory, or only in memory without one.
 * Source: docs/design/bundle.md "Revision and head".
 */

import { join } from 'node:path';
import {
  BundleError,
  type BundleErrorCode,
  bundleError,
  showValue,
} from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { readRegularFile, writeFileAtomically } from '../../../bundle/format/files.ts';
import { removeTemporaries } from '../../../process/files/durable-files.ts';
import { isBase64urlOf32Bytes } from '../../../protocol/base64url.ts';
import { hasExactMembers, isJsonObject, parseStrictJson } from '../../../protocol/strict-json.ts';

export const MARK_FILE = 'high-water-mark.json';
const MARK_FORMAT = 'proofgate.mark/v1';
const MAX_MARK_BYTES = 4096;

export interface HighWaterMark {
  /** @throws BundleError when the mark exists and cannot be read: then nothing may be loaded. */
  position(): Promise<ChainPosition | undefined>;
  /**
   * Returns when the position is stored. A position that is not higher changes nothing.
   * @throws BundleError `file_not_written`
   */
  raise(position: ChainPosition): Promise<void>;
}

/** A mark in memory only, lost at the end of the process. */
export class MemoryMark implements HighWaterMark {
  #position: ChainPosition | undefined;

  async position(): Promise<ChainPosition | undefined> {
    return this.#position;
  }

  async raise(position: ChainPosition): Promise<void> {
    if (isHigher(position, this.#position)) this.#position = position;
  }
}

export interface FileMarkOptions {
  /** Must exist: an unmounted volume must not look like a verifier without history. */
  readonly stateDirectory: string;
  readonly authSite: string;
}

/** A mark that survives a restart: a small file in the state directory, read once and written when the mark rises. */
export class FileMark implements HighWaterMark {
  readonly #directory: string;
  readonly #authSite: string;
  #position: ChainPosition | undefined;
  #isRead = false;
  #isWritten = false;

  constructor({ stateDirectory, authSite }: FileMarkOptions) {
    this.#directory = stateDirectory;
    this.#authSite = authSite;
  }

  async position(): Promise<ChainPosition | undefined> {
    if (!this.#isRead) {
      this.#position = await this.#read();
      this.#isRead = true;
    }
    return this.#position;
  }

  async raise(position: ChainPosition): Promise<void> {
    if (!isHigher(position, await this.position())) return;
    const { revision, head } = position;
    const mark = { format: MARK_FORMAT, auth_site: this.#authSite, revision, head };
    // Only a process that writes may remove temporary files: others read the mark of a running verifier.
    if (!this.#isWritten) await removeTemporaries(join(this.#directory, MARK_FILE));
    this.#isWritten = true;
    await writeFileAtomically(this.#directory, MARK_FILE, Buffer.from(`${JSON.stringify(mark)}\n`));
    this.#position = position;
  }

  async #read(): Promise<ChainPosition | undefined> {
    try {
      const file = { directory: this.#directory, file: MARK_FILE, maxBytes: MAX_MARK_BYTES };
      return parseMark(await readRegularFile(file), this.#authSite);
    } catch (error) {
      if (!(error instanceof BundleError)) throw error;
      if (error.code === 'file_missing') return undefined;
      throw NOT_A_MARK.has(error.code) ? corrupt(error.message) : error;
    }
  }
}

/** Errors that mean that something other than a mark is in its place. */
const NOT_A_MARK: ReadonlySet<BundleErrorCode> = new Set(['file_too_large', 'file_not_regular']);

function isHigher(position: ChainPosition, mark: ChainPosition | undefined): boolean {
  return mark === undefined || position.revision > mark.revision;
}

function parseMark(bytes: Buffer, authSite: string): ChainPosition {
  const value = parseMarkJson(bytes);
  if (!isJsonObject(value) || !hasExactMembers(value, ['format', 'auth_site', 'revision', 'head'])) {
    throw corrupt('members must be format, auth_site, revision and head');
  }
  const { format, auth_site: site, revision, head } = value;
  if (format !== MARK_FORMAT) throw corrupt(`format must be ${MARK_FORMAT}`);
  if (site !== authSite) {
    const text = `it is of ${showValue(site)}, but this is ${showValue(authSite)}`;
    throw bundleError('mark_of_another_site', MARK_FILE, '/auth_site', text);
  }
  if (typeof revision !== 'number' || !Number.isSafeInteger(revision) || revision < 1) {
    throw corrupt('revision is no positive integer');
  }
  if (typeof head !== 'string' || !isBase64urlOf32Bytes(head)) throw corrupt('head is no SHA-256');
  return { revision, head };
}

function parseMarkJson(bytes: Buffer): unknown {
  try {
    return parseStrictJson(bytes.toString('utf8'));
  } catch {
    throw corrupt('not JSON');
  }
}

/** Fails closed: an unreadable mark may have been a high one. */
function corrupt(text: string): BundleError {
  return bundleError(
    'mark_corrupt',
    MARK_FILE,
    '',
    `${text}; nothing is loaded until it is restored or reset`,
  );
}
