/**
 * Creates bundles without a control plane: turns `bundle.yaml` into signed documents in a directory.
 * Source: docs/design/bundle.md "Revision and head" and "Signed documents".
 */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import { AcceptedKeys } from '../compile/accepted-keys.ts';
import { compileBundle } from '../compile/compile.ts';
import { makeShards, type WrittenShard } from '../compile/key-shards.ts';
import { bundleError } from '../format/bundle-error.ts';
import { MAX_INLINE_DERIVED_KEYS } from '../format/bundle-limits.ts';
import type { ChainPosition } from '../format/chain.ts';
import { DOCUMENTS, type Signers, signDocument } from '../format/documents.ts';
import { BUNDLE_FILE, FRESHNESS_FILE } from '../format/file-names.ts';
import { fileError, writeFileAtomically } from '../format/files.ts';
import { LocalDirectory } from '../format/local-directory.ts';
import { type OpenedBundle, openBundle, parseContent, positionOf } from '../format/open-document.ts';
import type { BundleContent, DerivedKeyContent } from '../format/schema.ts';
import { asDerivedKey } from '../format/shape.ts';
import { readWholeChain } from './read-chain.ts';
import { readBundleYaml } from './yaml-source.ts';

/** Lifetime of a bundle whose author sets no expiry. */
const DEFAULT_BUNDLE_LIFETIME_SECONDS = 30 * 24 * 3600;

export interface SignBundleOptions {
  readonly yamlText: string;
  /** Name of the YAML file, for errors. */
  readonly fileName: string;
  /** One signature each; at least one. */
  readonly signingKeys: readonly SigningKey[];
  /** Directory of the previous bundle, which one of the trusted keys must have signed for the same site. */
  readonly previousDirectory?: string | undefined;
  /** Created when it is missing. */
  readonly outDirectory: string;
  /** Becomes `issued_at`. Whole seconds since the epoch. */
  readonly nowSeconds: number;
  /** Allowed signers of the previous bundle. Default: the signing keys. */
  readonly trusted?: Signers | undefined;
}

/**
 * Signs an author's file. Sets `issued_at`, `previous_head` and, if the file omits them, `revision` (the previous one
 * plus 1, or 1) and `expires_at` (in 30 days). Writes the shards, `bundle.jws` and a first `freshness.jws`, but only if
 * a verifier would load them.
 * @throws BundleError
 */
export async function signBundle(options: SignBundleOptions): Promise<ChainPosition> {
  const { fileName, signingKeys, outDirectory, nowSeconds } = options;
  const trusted = options.trusted ?? anyOf(signingKeys, fileName);
  const previous = await readPrevious(options, trusted);
  const draft = completeDraft(readBundleYaml(options.yamlText, fileName), {
    file: fileName,
    nowSeconds,
    previous,
  });
  const signed = await signContent(draft, { file: fileName, signingKeys });
  checkSuccession(signed.content, previous, fileName);
  await mkdir(outDirectory, { recursive: true }).catch((error: unknown) => {
    throw fileError(error, outDirectory);
  });
  for (const { entry, bytes } of draft.shards) await writeFileAtomically(outDirectory, entry.file, bytes);
  await writeFileAtomically(outDirectory, BUNDLE_FILE, signed.document);
  const { auth_site: authSite } = signed.content;
  const { position } = signed;
  await writeFreshness({ directory: outDirectory, authSite, position, signingKeys, nowSeconds });
  return signed.position;
}

/** The end of a chain whose documents, including deltas and links, are all signed by trusted keys. */
interface SignedChain {
  readonly authSite: string;
  readonly position: ChainPosition;
}

/** @throws BundleError when there is none, or when a document lacks signatures of the trusted keys */
async function readSignedChain(directory: string, trusted: Signers): Promise<SignedChain> {
  const { bundle, position } = await readWholeChain(directory, trusted);
  return { authSite: bundle.content.auth_site, position };
}

async function readPrevious(options: SignBundleOptions, trusted: Signers): Promise<SignedChain | undefined> {
  const { previousDirectory, outDirectory, fileName } = options;
  if (previousDirectory !== undefined) return readSignedChain(previousDirectory, trusted);
  const hasBundle = await stat(join(outDirectory, BUNDLE_FILE)).then(
    () => true,
    () => false,
  );
  if (hasBundle) {
    // Every verifier that knows the first one would reject a second first revision.
    const text =
      'the directory holds a bundle already: name it as the previous one, or choose another directory';
    throw bundleError('previous_bundle', fileName, '', text);
  }
  return undefined;
}

/** @throws BundleError when there is none, or it lacks signatures of the trusted keys. */
export async function readSignedBundle(directory: string, trusted: Signers): Promise<OpenedBundle> {
  const bytes = await new LocalDirectory(directory).read((files) => files.readBundle());
  return openBundle(bytes, { file: BUNDLE_FILE, signers: trusted, authSite: undefined });
}

/** Content to be signed. */
export interface BundleDraft {
  /** The shape has not been checked yet. */
  readonly content: JsonObject;
  readonly shards: readonly WrittenShard[];
}

export interface DraftOptions {
  readonly file: string;
  readonly nowSeconds: number;
  /** Position at the end of the previous chain. */
  readonly previous: { readonly position: ChainPosition } | undefined;
}

/** Fills in what an author may omit, and moves derived keys to shards when there are too many. */
export function completeDraft(written: JsonObject, options: DraftOptions): BundleDraft {
  const { file, nowSeconds, previous } = options;
  if (written.key_shards !== undefined) {
    const text = 'made when there are many derived_keys, not written by hand';
    throw bundleError('value_invalid', file, '/key_shards', text);
  }
  const chain = {
    revision: written.revision ?? (previous === undefined ? 1 : previous.position.revision + 1),
    issued_at: formatTime(nowSeconds),
    expires_at: written.expires_at ?? formatTime(nowSeconds + DEFAULT_BUNDLE_LIFETIME_SECONDS),
  };
  const { previous_head: _, ...rest } = written;
  const content: JsonObject = {
    ...rest,
    ...chain,
    ...(previous === undefined ? {} : { previous_head: previous.position.head }),
  };
  const { derived_keys: derivedKeys, ...others } = content;
  if (!Array.isArray(derivedKeys) || derivedKeys.length <= MAX_INLINE_DERIVED_KEYS) {
    return { content, shards: [] };
  }
  const shards = makeShards(
    derivedKeys.map(
      (key: unknown, index): DerivedKeyContent => asDerivedKey(key, file, `/derived_keys/${index}`),
    ),
  );
  return { content: { ...others, key_shards: shards.map(({ entry }) => entry) }, shards };
}

export interface SignContentOptions {
  /** Source of the content, for errors. */
  readonly file: string;
  readonly signingKeys: readonly SigningKey[];
  /** Cache for callers that sign repeatedly, so that each key is checked only once. */
  readonly acceptedKeys?: AcceptedKeys | undefined;
}

export interface SignedBundle {
  readonly content: BundleContent;
  readonly position: ChainPosition;
  /** Bytes of `bundle.jws`. */
  readonly document: Buffer;
}

/**
 * Checks content as a verifier would, rejects subjects that match no caller, then signs it.
 * @throws BundleError with every fault in the content
 */
export async function signContent(draft: BundleDraft, options: SignContentOptions): Promise<SignedBundle> {
  const { file, signingKeys } = options;
  anyOf(signingKeys, file);
  const payload = Buffer.from(JSON.stringify(draft.content));
  // Checks the content as it will be parsed, not the object that it was made from.
  const content = parseContent('bundle', payload, file);
  const position = positionOf(content, payload, file);
  const keys = (options.acceptedKeys ?? new AcceptedKeys()).begin();
  await compileBundle(content, {
    file,
    head: position.head,
    readShard: (name) => readDraftShard(draft, name),
    importKey: keys.importKey,
    isBeingWritten: true,
  });
  keys.succeeded();
  return { content, position, document: signDocument(DOCUMENTS.bundle.type, payload, signingKeys) };
}

async function readDraftShard(draft: BundleDraft, file: string): Promise<Buffer> {
  const shard = draft.shards.find(({ entry }) => entry.file === file);
  if (shard === undefined) throw bundleError('file_missing', file, '', 'no such shard');
  return shard.bytes;
}

function checkSuccession(content: BundleContent, previous: SignedChain | undefined, file: string): void {
  if (previous === undefined) return;
  if (content.auth_site !== previous.authSite) {
    throw bundleError('auth_site_mismatch', file, '/auth_site', 'not that of the previous bundle');
  }
  if (content.revision <= previous.position.revision) {
    const text = `${content.revision} is not higher than ${previous.position.revision}, the previous bundle's`;
    throw bundleError('revision_lower', file, '/revision', text);
  }
}

/** Signers of which any one is enough. */
function anyOf(signingKeys: readonly SigningKey[], file: string): Signers {
  if (signingKeys.length === 0) throw bundleError('signing_key_missing', file, '', 'no key to sign with');
  return { keys: signingKeys.map(({ publicKey }) => publicKey), threshold: 1 };
}

export interface FreshenOptions {
  readonly directory: string;
  readonly signingKeys: readonly SigningKey[];
  /** Becomes `as_of`. Whole seconds since the epoch. */
  readonly nowSeconds: number;
  /** Allowed signers of the bundle. Default: the signing keys. */
  readonly trusted?: Signers | undefined;
}

export interface Freshened extends ChainPosition {
  readonly asOfSeconds: number;
}

/**
 * States that the directory's content, with its deltas and links, is the latest as of now. Rejects a directory that
 * another key signed, or whose steps do not continue the bundle, because verifiers would not agree with the statement.
 * @throws BundleError
 */
export async function freshen(options: FreshenOptions): Promise<Freshened> {
  const { directory, signingKeys, nowSeconds } = options;
  const trusted = options.trusted ?? anyOf(signingKeys, FRESHNESS_FILE);
  const { authSite, position } = await readSignedChain(directory, trusted);
  await writeFreshness({ directory, authSite, position, signingKeys, nowSeconds });
  return { ...position, asOfSeconds: nowSeconds };
}

interface Statement {
  readonly directory: string;
  readonly authSite: string;
  readonly position: ChainPosition;
  readonly signingKeys: readonly SigningKey[];
  readonly nowSeconds: number;
}

async function writeFreshness(statement: Statement): Promise<void> {
  const { authSite, directory, nowSeconds, position, signingKeys } = statement;
  anyOf(signingKeys, FRESHNESS_FILE);
  const { revision, head } = position;
  const content = { auth_site: authSite, revision, head, as_of: formatTime(nowSeconds) };
  const payload = Buffer.from(JSON.stringify(content));
  const document = signDocument(DOCUMENTS.freshness.type, payload, signingKeys);
  await writeFileAtomically(directory, FRESHNESS_FILE, document);
}
