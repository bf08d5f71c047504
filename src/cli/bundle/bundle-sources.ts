/** Reads the arguments of `bundle lint` and `bundle diff`: a source file in YAML, or a directory of signed documents. */
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { completeDraft, readSignedBundle } from '../../bundle/authoring/authoring.ts';
import type { Finding } from '../../bundle/authoring/findings.ts';
import { lintBundle, lintBundleYaml } from '../../bundle/authoring/lint-content.ts';
import { withChain } from '../../bundle/authoring/read-chain.ts';
import {
  contentOfChain,
  contentOfDraft,
  parseShard,
  type SiteContent,
} from '../../bundle/authoring/site-content.ts';
import { readBundleYaml } from '../../bundle/authoring/yaml-source.ts';
import { compileBundle } from '../../bundle/compile/compile.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import { LocalDirectory } from '../../bundle/format/local-directory.ts';
import { positionOf, readContent } from '../../bundle/format/open-document.ts';
import { asContent } from '../../bundle/format/shape.ts';
import { readInputText } from '../../process/files/input-files.ts';

interface LintReport {
  readonly findings: readonly Finding[];
  /** `none`: a source file has no signatures. */
  readonly signatures: 'none' | 'valid' | 'not_checked';
}

const MAX_YAML_BYTES = 64 * 1024 * 1024;

/**
 * @param signers required signers of a directory's bundle; undefined when signatures are not checked
 * @throws BundleError, CliError
 */
export async function lintSource(source: string, signers: Signers | undefined): Promise<LintReport> {
  if (await isDirectory(source)) return lintDirectory(source, signers);
  const yamlText = await readInputText(source, MAX_YAML_BYTES);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const findings = await lintBundleYaml({ yamlText, fileName: basename(source), nowSeconds });
  return { findings, signatures: 'none' };
}

function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

async function lintDirectory(path: string, signers: Signers | undefined): Promise<LintReport> {
  if (signers !== undefined) await readSignedBundle(path, signers);
  const content = await new LocalDirectory(path).read(async (files) => {
    const document = { file: BUNDLE_FILE, bytes: await files.readBundle() };
    const read = readContent('bundle', document, undefined);
    const { head } = positionOf(read.content, read.document.payload, BUNDLE_FILE);
    await compileBundle(read.content, {
      file: BUNDLE_FILE,
      head,
      readShard: (file) => files.readShard(file),
    });
    return read.content;
  });
  return { findings: lintBundle(content), signatures: signers === undefined ? 'not_checked' : 'valid' };
}

interface DiffSource {
  readonly content: SiteContent;
  /** End of its chain; undefined for an unsigned source file. */
  readonly position: ChainPosition | undefined;
  /** False when signing would set the expiry. */
  readonly saysExpiry: boolean;
  /** `none`: a source file has no signatures. */
  readonly signatures: 'none' | 'valid' | 'not_checked';
}

/**
 * @param signers required signers of each document in a directory; undefined when signatures are not checked
 * @throws BundleError, CliError
 */
export async function readDiffSource(source: string, signers: Signers | undefined): Promise<DiffSource> {
  return (await isDirectory(source)) ? readDirectory(source, signers) : readYaml(source);
}

function readDirectory(directory: string, signers: Signers | undefined): Promise<DiffSource> {
  return withChain(directory, signers, async (chain) => {
    // A broken chain has no well-defined content.
    if (chain.refused !== undefined) throw chain.refused;
    return {
      content: await contentOfChain(chain),
      position: chain.position,
      saysExpiry: true,
      signatures: signers === undefined ? 'not_checked' : 'valid',
    };
  });
}

async function readYaml(path: string): Promise<DiffSource> {
  const file = basename(path);
  const written = readBundleYaml(await readInputText(path, MAX_YAML_BYTES), file);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const draft = completeDraft(written, { file, nowSeconds, previous: undefined });
  const { key_shards: _, ...content } = asContent('bundle', draft.content, file);
  const inShards = draft.shards.flatMap(({ bytes, entry }) => parseShard(bytes, entry.file));
  const keys = [...(content.derived_keys ?? []), ...inShards];
  return {
    content: contentOfDraft(content, keys, file),
    position: undefined,
    saysExpiry: written.expires_at !== undefined,
    signatures: 'none',
  };
}
