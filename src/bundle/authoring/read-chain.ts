/**
 * Reads the chain of documents in a bundle directory or a state directory, for commands: the whole bundle, then its
 * deltas and links. It compiles nothing. Verifiers use `active-bundle.ts`.
 * Source: docs/bundle.md "Revision and head" and "The state directory".
 */
import { readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asBundleError, BundleError, bundleError } from '../format/bundle-error.ts';
import { type ChainPosition, judgeStep } from '../format/chain.ts';
import {
  checkSignatures,
  DOCUMENT_TYPES,
  MAX_BUNDLE_BYTES,
  MAX_DELTA_BYTES,
  MAX_LINK_BYTES,
  parsePayload,
  readDocument,
  type Signers,
  type UnverifiedDocument,
} from '../format/documents.ts';
import { BUNDLE_FILE, CURRENT_LINK } from '../format/file-names.ts';
import { LocalDirectory, type ResolvedDirectory } from '../format/local-directory.ts';
import { checkAuthSite, positionOf } from '../format/open-bundle.ts';
import { positionOfDelta, positionOfLink, type StepDocument, stepKindOf } from '../format/open-step.ts';
import type { BundleContent, DeltaContent, LinkContent } from '../format/schema.ts';
import { asBundleContent, asDeltaContent, asLinkContent } from '../format/shape.ts';
import { readStepLog, STEP_LOG_FILE } from '../format/step-log.ts';

interface Read {
  readonly file: string;
  readonly document: UnverifiedDocument;
  readonly position: ChainPosition;
}

interface ReadBundle extends Read {
  readonly kind: 'bundle';
  readonly content: BundleContent;
}

type ReadStep =
  | (Read & { readonly kind: 'delta'; readonly content: DeltaContent })
  | (Read & { readonly kind: 'link'; readonly content: LinkContent });

export interface ChainOnDisk {
  readonly bundle: ReadBundle;
  /** The steps that continue it, in order. */
  readonly steps: readonly ReadStep[];
  /** Position at the end of the chain. */
  readonly position: ChainPosition;
  /** Why the next step in the directory does not continue it; undefined when there is none. */
  readonly refused: BundleError | undefined;
  readonly files: ResolvedDirectory;
}

/**
 * @param trusted who must have signed each document, checked before it is parsed; undefined disables verification
 * @param use called with the chain; called again if the directory was replaced meanwhile
 * @throws BundleError for a bundle that is missing, malformed or not signed by them
 */
export async function withChain<T>(
  directory: string,
  trusted: Signers | undefined,
  use: (chain: ChainOnDisk) => Promise<T>,
): Promise<T> {
  const isState = await isStateDirectory(directory);
  const source = new LocalDirectory(isState ? join(directory, CURRENT_LINK) : directory);
  return source.read(async (files) => use(await readChain(files, trusted, isState)));
}

/** As {@link withChain}, for callers that do not need the directory itself. */
export function readChainOf(directory: string, trusted: Signers | undefined): Promise<ChainOnDisk> {
  return withChain(directory, trusted, async (chain) => chain);
}

/** Reads the chain to its end. @throws BundleError also for a step that does not continue it */
export async function readWholeChain(directory: string, trusted: Signers): Promise<ChainOnDisk> {
  const chain = await readChainOf(directory, trusted);
  if (chain.refused !== undefined) throw chain.refused;
  return chain;
}

async function isStateDirectory(directory: string): Promise<boolean> {
  const hasBundle = await stat(join(directory, BUNDLE_FILE)).then(
    () => true,
    () => false,
  );
  if (hasBundle) return false;
  return readlink(join(directory, CURRENT_LINK)).then(
    () => true,
    () => false,
  );
}

async function readChain(
  files: ResolvedDirectory,
  trusted: Signers | undefined,
  isState: boolean,
): Promise<ChainOnDisk> {
  const bundle = readBundle(await files.readBundle(), trusted);
  const documents = isState ? stepsOfLog(files) : stepsBeside(files, bundle.position.revision);
  const steps: ReadStep[] = [];
  let { position } = bundle;
  try {
    for await (const found of documents) {
      const step = readStep(found, trusted, bundle.content.auth_site);
      const { previous_head: previousHead } = step.content;
      const error = judgeStep(position, { previousHead, position: step.position }, found.file);
      if (error !== undefined) throw error;
      steps.push(step);
      position = step.position;
    }
    return { bundle, steps, position, refused: undefined, files };
  } catch (error) {
    if (error instanceof BundleError && error.code === 'file_missing') throw error;
    return { bundle, steps, position, refused: asBundleError(error, BUNDLE_FILE), files };
  }
}

function readBundle(bytes: Buffer, trusted: Signers | undefined): ReadBundle {
  const document = readDocument({ file: BUNDLE_FILE, bytes, maxBytes: MAX_BUNDLE_BYTES });
  if (trusted !== undefined) {
    checkSignatures(document, { file: BUNDLE_FILE, type: DOCUMENT_TYPES.bundle }, trusted);
  }
  const content = asBundleContent(parsePayload(document.payload, BUNDLE_FILE), BUNDLE_FILE);
  const position = positionOf(content, document.payload, BUNDLE_FILE);
  return { kind: 'bundle', file: BUNDLE_FILE, document, content, position };
}

function readStep(
  { bytes, file, kind }: StepDocument,
  trusted: Signers | undefined,
  authSite: string,
): ReadStep {
  const maxBytes = kind === 'delta' ? MAX_DELTA_BYTES : MAX_LINK_BYTES;
  const document = readDocument({ file, bytes, maxBytes });
  if (trusted !== undefined) checkSignatures(document, { file, type: DOCUMENT_TYPES[kind] }, trusted);
  const value = parsePayload(document.payload, file);
  const step = kind === 'delta' ? asDelta(value, file, document) : asLink(value, file, document);
  checkAuthSite(step.content.auth_site, authSite, file);
  return step;
}

function asDelta(value: unknown, file: string, document: UnverifiedDocument): ReadStep {
  const content = asDeltaContent(value, file);
  const position = positionOfDelta(content, document.payload, file);
  return { kind: 'delta', file, document, content, position };
}

function asLink(value: unknown, file: string, document: UnverifiedDocument): ReadStep {
  const content = asLinkContent(value, file);
  return { kind: 'link', file, document, content, position: positionOfLink(content, file) };
}

async function* stepsBeside(files: ResolvedDirectory, revision: number): AsyncGenerator<StepDocument> {
  for (const { kind, name } of await files.stepsAfter(revision)) {
    yield { kind, file: name, bytes: await files.readStep(name, kind) };
  }
}

async function* stepsOfLog(files: ResolvedDirectory): AsyncGenerator<StepDocument> {
  let line = 0;
  for await (const bytes of readStepLog(files.path)) {
    line++;
    const file = `${STEP_LOG_FILE}:${line}`;
    if (bytes.length === 0) throw bundleError('document_malformed', file, '', 'an empty line');
    yield { kind: stepKindOf(bytes, file), file, bytes };
  }
}
