/** `proofgate ctl apply`: changes Control's configuration to match a site file. */
import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanStep } from '../../../client/operator/plan.ts';
import { usageError } from '../../../program/errors.ts';
import { readInputText } from '../../../program/input-files.ts';
import { writeNewFile } from '../../../program/output-files.ts';
import {
  duration,
  lettered,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../../program/settings.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { type CliContext, command } from '../../define-command.ts';

const MAX_SITE_FILE_BYTES = 16 * 1024 * 1024;
/** A target's name is used as a file name. */
const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

const SETTINGS = {
  ...CTL_SETTINGS,
  file: required(lettered(text('--file <file>', 'site file, YAML or JSON'), 'f')),
  dryRun: toggle('--dry-run', 'show what would be done, and do nothing', false),
  prune: toggle(
    '--prune',
    'also remove brokers, clients, routes and policies that the file does not name',
    false,
  ),
  tokenDir: optional(
    text('--token-dir <directory>', 'where tokens of new targets are written, <target>.token'),
  ),
  activationTimeoutMs: withDefault(
    duration('--activation-timeout <duration>', 'how long a source may take to become active', {
      minMs: 1000,
    }),
    '1m',
  ),
};
type Values = SettingValues<typeof SETTINGS>;

export const ctlApplyCommand = command({
  name: 'apply',
  summary: 'Apply a site file to Control; idempotent',
  settings: SETTINGS,
  examples: [
    'proofgate ctl apply -f site.yaml --control-url https://control.example --token-file token --dry-run',
    'proofgate ctl apply -f site.yaml --control-url https://control.example --token-file token --token-dir tokens',
  ],
  run: ({ settings }, context) => apply(settings, context),
});

async function apply(values: Values, context: CliContext): Promise<void> {
  const { parseSiteFile } = await import('../../../client/operator/site-file.ts');
  const { readCurrentSite } = await import('../../../client/operator/read-current.ts');
  const { planSite } = await import('../../../client/operator/plan.ts');
  const { planWarnings, refuseFixedChanges } = await import('../../../client/operator/plan-checks.ts');
  const { applyPlan } = await import('../../../client/operator/apply.ts');
  const text = await readInputText(values.file, MAX_SITE_FILE_BYTES);
  const { output } = context;
  await withControl(values, context, async (api) => {
    const file = parseSiteFile(text, values.file);
    const current = await readCurrentSite(api, file);
    refuseFixedChanges(file, current);
    const steps = planSite(file, current, { prune: values.prune });
    const warnings = planWarnings(file, current);
    const answer = {
      site_id: file.site.site_id,
      dry_run: values.dryRun,
      steps,
      warnings: warnings.map(({ code, deniedSeconds, text }) => ({
        code,
        message: text,
        denied_seconds: deniedSeconds,
      })),
    };
    if (steps.length === 0) return output.result(['nothing to do'], answer);
    for (const { code, text } of warnings) output.note(code, `warning: ${text}`);
    if (values.dryRun) return output.result(steps.flatMap(linesOf), answer);
    const tokenDirectory = await tokenDirectoryFor(steps, values);
    const done: PlanStep[] = [];
    try {
      await applyPlan(steps, {
        api,
        file,
        current,
        activationTimeoutMs: values.activationTimeoutMs,
        onDone: (step) => {
          done.push(step);
          output.progress(lineOf(step));
        },
        onWaiting: tellNowAndThen(output),
        keepTargetToken: (target, token) =>
          writeNewFile({
            path: join(tokenDirectory, tokenFileOf(target)),
            content: `${token}\n`,
            mode: 0o600,
          }),
      });
    } catch (error) {
      tellHowFar(done, steps, output);
      throw error;
    }
    output.result(steps.flatMap(linesOf), answer);
  });
}

function lineOf({ verb, kind, name }: PlanStep): string {
  return `${verb} ${kind} ${name}`;
}

function linesOf(step: PlanStep): readonly string[] {
  return [lineOf(step), ...step.changes.map((change) => `    ${change}`)];
}

/** The changes that a failed run completed. */
function tellHowFar(
  done: readonly PlanStep[],
  steps: readonly PlanStep[],
  output: CliContext['output'],
): void {
  const next = steps[done.length];
  const failed = next === undefined ? '' : `; this one failed: ${lineOf(next)}`;
  output.note(
    'partly_applied',
    `${done.length} of ${steps.length} steps are done${failed}. The next run goes on from there`,
  );
}

/** Checks the token directory before any change, because a token that cannot be stored is lost. */
async function tokenDirectoryFor(steps: readonly PlanStep[], { tokenDir }: Values): Promise<string> {
  const targets = steps.filter(({ verb, kind }) => verb === 'create' && kind === 'target');
  if (targets.length === 0) return '';
  const unfit = targets.find(({ name }) => !FILE_NAME.test(name));
  if (unfit !== undefined) {
    throw usageError('target_name_invalid', `target ${unfit.name} cannot be a file's name; rename it`);
  }
  if (tokenDir === undefined) {
    throw usageError(
      'token_dir_required',
      `target ${targets[0]?.name ?? ''} will be created: name a directory for its token with --token-dir`,
    );
  }
  await assertWritable(tokenDir);
  for (const { name } of targets) await assertFree(join(tokenDir, tokenFileOf(name)));
  return tokenDir;
}

const tokenFileOf = (target: string) => `${target}.token`;

async function assertWritable(directory: string): Promise<void> {
  const isDirectory = await lstat(join(directory, '.')).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  const isWritable = await access(directory, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (isDirectory && isWritable) return;
  throw usageError('token_dir_unusable', `${directory} is not a directory that can be written to`);
}

async function assertFree(path: string): Promise<void> {
  const isThere = await lstat(path).then(
    () => true,
    () => false,
  );
  if (isThere)
    throw usageError('file_exists', `${path} is there already; a new target's token would go there`);
}

const TELL_EVERY_MS = 5000;

/** Shows progress: one line that is overwritten in a terminal, elsewhere a line every few seconds. */
function tellNowAndThen(output: CliContext['output']): (text: string) => void {
  let reportedAtMs = performance.now();
  return (text) => {
    if (output.progress(text) || performance.now() - reportedAtMs < TELL_EVERY_MS) return;
    reportedAtMs = performance.now();
    output.note('waiting', text);
  };
}
