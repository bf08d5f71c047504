/** The command of `envoy lint`, `nginx lint`, `caddy lint` and `traefik lint`: reports settings of a gateway that weaken or bypass the check. */

import { readFileOrInput } from '../../process/files/input-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';
import { visibleText } from '../../process/program/visible-text.ts';
import { list, type SettingValues, text } from '../../process/settings/settings.ts';
import type { Finding } from '../../tools/gateway-lint/gateway/gateway.ts';
import type { LintOptions, LintReport } from '../../tools/gateway-lint/lint.ts';
import { type CliContext, command } from '../define/define-command.ts';

/** Dumps of large gateways have tens of megabytes. */
const MAX_BYTES = 64 * 1024 * 1024;

export const LINT_SETTINGS = {
  allowedRules: list(text('--allow <rule>', 'pass over what this rule finds')),
};

export interface Linter {
  isRule(name: string): boolean;
  /** Undefined for a text that configures nothing of the gateway. @throws UnreadableText */
  lint(content: string, options: LintOptions): LintReport | undefined;
}

interface LintCommand {
  /** Description of the file for the help. */
  readonly file: string;
  readonly examples: readonly string[];
  /** Imports the rules, which only this command needs. */
  readonly load: () => Promise<Linter>;
}

export const lintCommand = ({ examples, file, load }: LintCommand) =>
  command({
    name: 'lint',
    summary: 'Find settings of a gateway that weaken or bypass the check',
    positionals: { file },
    settings: LINT_SETTINGS,
    examples,
    run: async ({ settings, positionals }, context) =>
      lintFile(await load(), positionals.file, settings, context),
  });

/** Prints the findings. @throws CliError `gateway_findings` when there is one */
export async function lintFile(
  linter: Linter,
  file: string,
  settings: SettingValues<typeof LINT_SETTINGS>,
  { output }: CliContext,
): Promise<void> {
  const shownName = file === '-' ? 'standard input' : file;
  const { findings, allowed } = await reportOn(linter, {
    file,
    shownName,
    allowedRules: settings.allowedRules,
  });
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

interface LintInput extends LintOptions {
  readonly file: string;
  readonly shownName: string;
}

async function reportOn(linter: Linter, { allowedRules, file, shownName }: LintInput): Promise<LintReport> {
  const { UnreadableText } = await import('../../tools/gateway-lint/gateway/source-file.ts');
  const unknown = allowedRules.find((rule) => !linter.isRule(rule));
  if (unknown !== undefined)
    throw usageError('lint_rule_unknown', `--allow ${unknown}: there is no such rule`);
  const content = await readFileOrInput(file, MAX_BYTES);
  try {
    const report = linter.lint(content, { allowedRules });
    if (report !== undefined) return report;
  } catch (error) {
    if (!(error instanceof UnreadableText)) throw error;
    throw usageError('gateway_file_invalid', `${shownName}: ${error.message}`);
  }
  throw usageError('gateway_file_unknown', `${shownName} holds no configuration of a gateway`);
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
