/** Reads the inputs of `bundle diff`: a bundle source file, a directory of signed documents, or a state directory. */
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { completeDraft } from '../../bundle/authoring/authoring.ts';
import { withChain } from '../../bundle/authoring/read-chain.ts';
import {
  contentOfChain,
  contentOfDraft,
  parseShard,
  type SiteContent,
} from '../../bundle/authoring/site-content.ts';
import { readBundleYaml } from '../../bundle/authoring/yaml-source.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { asContent } from '../../bundle/format/shape.ts';
import { readInputText } from '../../program/input-files.ts';

export interface DiffSource {
  readonly content: SiteContent;
  /** End of its chain; undefined for an unsigned source file. */
  readonly position: ChainPosition | undefined;
  /** False when signing would set the expiry. */
  readonly saysExpiry: boolean;
  /** `none`: a source file has no signatures. */
  readonly signatures: 'none' | 'hold' | 'not_checked';
}

const MAX_YAML_BYTES = 64 * 1024 * 1024;

/**
 * @param signers required signers of each document in a directory; undefined when signatures are not checked
 * @throws BundleError, CliError
 */
export async function readDiffSource(source: string, signers: Signers | undefined): Promise<DiffSource> {
  const isDirectory = await stat(source).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  return isDirectory ? readDirectory(source, signers) : readYaml(source);
}

function readDirectory(directory: string, signers: Signers | undefined): Promise<DiffSource> {
  return withChain(directory, signers, async (chain) => {
    // A broken chain has no well-defined content.
    if (chain.refused !== undefined) throw chain.refused;
    return {
      content: await contentOfChain(chain),
      position: chain.position,
      saysExpiry: true,
      signatures: signers === undefined ? 'not_checked' : 'hold',
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
