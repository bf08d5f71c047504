/** `proofgate bundle lint`: reports errors that prevent signing or loading a bundle, and warnings. */

import type { Finding } from '../../../bundle/authoring/findings.ts';
import type { BundleFault } from '../../../bundle/format/bundle-error.ts';
import { CliError } from '../../../process/program/errors.ts';
import type { Output } from '../../../process/program/output.ts';
import { visibleText } from '../../../process/program/visible-text.ts';
import { type SettingValues, toggle } from '../../../process/settings/settings.ts';
import { readTrustedSigners, TRUSTED_SIGNERS } from '../../bundle/bundle-flags.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const SETTINGS = {
  ...TRUSTED_SIGNERS,
  strict: toggle('--strict', 'fail on warnings too', false),
};
type Values = SettingValues<typeof SETTINGS>;

export const bundleLintCommand = command({
  name: 'lint',
  summary: 'Check a bundle, as YAML or signed',
  positionals: { source: 'bundle in YAML, or directory with a signed one' },
  settings: SETTINGS,
  examples: [
    'proofgate bundle lint bundle.yaml --strict',
    'proofgate bundle lint bundle --bundle-key signer.jwk.json --output json',
  ],
  run: ({ settings, positionals }, context) => lint(positionals.source, settings, context),
});

async function lint(source: string, settings: Values, { output }: CliContext): Promise<void> {
  const { isRejectedBundle } = await import('../../errors/library-errors.ts');
  const { lintSource } = await import('../../bundle/bundle-sources.ts');
  const signers = await readTrustedSigners(settings);
  try {
    const report = await lintSource(source, signers);
    showFindings(report.findings.map(rowOfFinding), output);
    if (report.signatures === 'not_checked') {
      output.note('signatures_not_checked', 'signatures were not checked: --bundle-key names who may sign');
    }
    const warnings = report.findings.filter(({ severity }) => severity === 'warning');
    if (settings.strict && warnings.length > 0) {
      throw new CliError('refused', 'bundle_warnings', `${warnings.length} warnings, and --strict is given`);
    }
  } catch (error) {
    if (isRejectedBundle(error)) showFindings(error.faults.map(rowOfFault), output);
    throw error;
  }
}

interface Row {
  readonly severity: 'error' | 'warning' | 'notice';
  readonly code: string;
  /** JSON Pointer (RFC 6901); empty for the whole document. */
  readonly path: string;
  readonly text: string;
}

function rowOfFinding({ severity, code, path, text }: Finding): Row {
  return { severity, code, path, text };
}

function rowOfFault({ code, path, text }: BundleFault): Row {
  return { severity: 'error', code, path, text };
}

function showFindings(rows: readonly Row[], output: Output): void {
  output.result(
    rows.map(({ severity, code, path, text }) =>
      visibleText(`${severity} ${code} ${path === '' ? '/' : path}: ${text}`),
    ),
    { findings: rows },
  );
}
