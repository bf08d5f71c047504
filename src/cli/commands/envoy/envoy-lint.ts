/** `proofgate envoy lint`: reports settings of a gateway that weaken or bypass the check. */
import type { Finding } from '../../../gateway-lint/gateway.ts';
import type { LintReport } from '../../../gateway-lint/lint.ts';
import { CliError, usageError } from '../../../program/errors.ts';
import { readInputText, readStandardInput } from '../../../program/input-files.ts';
import { list, type SettingValues, text } from '../../../program/settings.ts';
import { visibleText } from '../../../program/visible-text.ts';
import { type CliContext, command, group } from '../../define-command.ts';

/** Dumps of large gateways have tens of megabytes. */
const MAX_BYTES = 64 * 1024 * 1024;

const SETTINGS = {
  allowedRules: list(text('--allow <rule>', 'pass over what this rule finds')),
};

const lintCommand = command({
  name: 'lint',
  summary: 'Find settings of a gateway that weaken or bypass the check',
  positionals: {
    file: 'bootstrap, config_dump, or manifests for Istio, Envoy Gateway or Gateway API; - for standard input',
  },
  settings: SETTINGS,
  examples: [
    'proofgate envoy lint envoy.yaml',
    'curl -s http://127.0.0.1:9901/config_dump | proofgate envoy lint - --output json',
    'proofgate envoy lint manifests.yaml --allow peer-certificate',
  ],
  run: ({ settings, positionals }, context) => lint(positionals.file, settings, context),
});

export const envoyCommands = group('envoy', 'Check the configuration of gateways', [lintCommand]);

async function lint(
  file: string,
  settings: SettingValues<typeof SETTINGS>,
  { output }: CliContext,
): Promise<void> {
  const shownName = file === '-' ? 'standard input' : file;
  const { findings, allowed } = await reportOn(file, shownName, settings.allowedRules);
  output.result(
    findings.flatMap((finding) => linesOf(file, finding)),
    {
      file,
      findings: findings.map(membersOf),
      allowed,
    },
  );
  if (findings.length > 0) throw refusal(findings, shownName);
}

async function reportOn(
  file: string,
  shownName: string,
  allowedRules: readonly string[],
): Promise<LintReport> {
  const { isRule, lintGateway } = await import('../../../gateway-lint/lint.ts');
  const { UnreadableText } = await import('../../../gateway-lint/source-file.ts');
  const unknown = allowedRules.find((rule) => !isRule(rule));
  if (unknown !== undefined)
    throw usageError('lint_rule_unknown', `--allow ${unknown}: there is no such rule`);
  const content = file === '-' ? await standardInputText() : await readInputText(file, MAX_BYTES);
  try {
    const report = lintGateway(content, { allowedRules });
    if (report !== undefined) return report;
  } catch (error) {
    if (!(error instanceof UnreadableText)) throw error;
    throw usageError('gateway_file_invalid', `${shownName}: ${error.message}`);
  }
  throw usageError('gateway_file_unknown', `${shownName} holds no configuration of a gateway`);
}

async function standardInputText(): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readStandardInput(MAX_BYTES));
  } catch (error) {
    throw error instanceof TypeError
      ? usageError('file_not_text', 'standard input is not UTF-8 text')
      : error;
  }
}

function linesOf(file: string, { effect, fix, place, rule, severity }: Finding): readonly string[] {
  const head = `${file}:${place.line}:${place.column}: ${severity} ${rule}: ${effect}`;
  return [head, `    fix: ${fix}`].map(visibleText);
}

function membersOf({ effect, fix, place, rule, severity }: Finding) {
  return { rule, severity, line: place.line, column: place.column, effect, fix };
}

function refusal(findings: readonly Finding[], shownName: string): CliError {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const counts = `errors: ${errors}, warnings: ${findings.length - errors}`;
  return new CliError('refused', 'gateway_findings', `${shownName}: ${counts}`);
}
