/**
 * Reads the chain of documents in a bundle directory or a state directory, for commands: the whole bundle, then its
 * deltas and links. It compiles nothing. Verifiers use `active-bundle.ts`.
 * Source: docs/design/bundle.md "Revision and head" and "The state directory".
 */
import { readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asBundleError, BundleError, bundleError } from '../format/bundle-error.ts';
import { type ChainPosition, judgeStep } from '../format/chain.ts';
import type { Signers } from '../format/documents.ts';
import { BUNDLE_FILE, CURRENT_LINK } from '../format/file-names.ts';
import { LocalDirectory, type ResolvedDirectory } from '../format/local-directory.ts';
import {
  checkAuthSite,
  positionOf,
  positionOfLink,
  type ReadContent,
  readContent,
  type StepDocument,
  stepKindOf,
} from '../format/open-document.ts';
import { readStepLog, STEP_LOG_FILE } from '../format/step-log.ts';

interface Placed {
  /** Position of the chain after this document. */
  readonly position: ChainPosition;
}
type ReadBundle = ReadContent<'bundle'> & Placed;
type ReadStep = (ReadContent<'delta'> | ReadContent<'link'>) & Placed;

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
  const read = readContent('bundle', { file: BUNDLE_FILE, bytes }, trusted);
  return { ...read, position: positionOf(read.content, read.document.payload, BUNDLE_FILE) };
}

function readStep(step: StepDocument, trusted: Signers | undefined, authSite: string): ReadStep {
  const read = step.kind === 'delta' ? readDelta(step, trusted) : readLink(step, trusted);
  checkAuthSite(read.content.auth_site, authSite, step.file);
  return read;
}

function readDelta(step: StepDocument, trusted: Signers | undefined): ReadStep {
  const read = readContent('delta', step, trusted);
  return { ...read, position: positionOf(read.content, read.document.payload, step.file) };
}

function readLink(step: StepDocument, trusted: Signers | undefined): ReadStep {
  const read = readContent('link', step, trusted);
  return { ...read, position: positionOfLink(read.content, step.file) };
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
