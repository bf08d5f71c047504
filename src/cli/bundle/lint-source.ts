/** Lints a bundle source file or a directory of signed documents. */
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { readSignedBundle } from '../../bundle/authoring/authoring.ts';
import type { Finding } from '../../bundle/authoring/findings.ts';
import { lintBundle, lintBundleYaml } from '../../bundle/authoring/lint-content.ts';
import { compileBundle } from '../../bundle/compile/compile.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import { LocalDirectory } from '../../bundle/format/local-directory.ts';
import { positionOf, readContent } from '../../bundle/format/open-document.ts';
import { readInputText } from '../../program/input-files.ts';

export interface LintReport {
  readonly findings: readonly Finding[];
  /** `none`: a source file has no signatures. */
  readonly signatures: 'none' | 'hold' | 'not_checked';
}

const MAX_YAML_BYTES = 64 * 1024 * 1024;

/**
 * @param signers required signers of a directory's bundle; undefined when signatures are not checked
 * @throws BundleError, CliError
 */
export async function lintSource(source: string, signers: Signers | undefined): Promise<LintReport> {
  const isDirectory = await stat(source).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (isDirectory) return lintDirectory(source, signers);
  const yamlText = await readInputText(source, MAX_YAML_BYTES);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const findings = await lintBundleYaml({ yamlText, fileName: basename(source), nowSeconds });
  return { findings, signatures: 'none' };
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
  return { findings: lintBundle(content), signatures: signers === undefined ? 'not_checked' : 'hold' };
}
