/** `proofgate ctl apply`: changes Control's configuration to match a site file. */
import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { readInputText } from '../../../process/files/input-files.ts';
import { writeNewFile } from '../../../process/files/output-files.ts';
import { CliError, EXIT_CODES, usageError } from '../../../process/program/errors.ts';
import { visibleText } from '../../../process/program/visible-text.ts';
import {
  duration,
  lettered,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../../process/settings/settings.ts';
import type { ControlApi } from '../../ctl/client/control-api.ts';
import type { Declared } from '../../ctl/client/declaration.ts';
import { OperatorError } from '../../ctl/client/operator-error.ts';
import { confirm, YES } from '../../ctl/confirmation.ts';
import { type CtlResult, ctlCommand } from '../../ctl/ctl-connection.ts';
import { REASON } from '../../ctl/reason.ts';
import type { CliContext } from '../../define/define-command.ts';

export const MAX_SITE_FILE_BYTES = 16 * 1024 * 1024;
/** A target's name is used as a file name. */
const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

const SETTINGS = {
  file: required(lettered(text('--file <file>', 'site file, YAML or JSON'), 'f')),
  dryRun: toggle('--dry-run', 'show what would be done, and do nothing', false),
  prune: toggle(
    '--prune',
    'also remove brokers, OAuth issuers, clients, routes, sources and policies that the file does not name',
    false,
  ),
  ...REASON,
  ...YES,
  detailedExitcode: toggle('--detailed-exitcode', 'end with 6 when there are changes', false),
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
type Step = Declared['steps'][number];

export const ctlApplyCommand = ctlCommand({
  name: 'apply',
  summary: 'Apply a site file to Control; idempotent',
  settings: SETTINGS,
  examples: ['apply -f site.yaml --dry-run', 'apply -f site.yaml --token-dir tokens'],
  run: (api, { settings }, context) => apply(api, settings, context),
});

async function apply(api: ControlApi, values: Values, context: CliContext): Promise<CtlResult> {
  const { output } = context;
  const { declareSite, largeRemovals, readSiteFile } = await import('../../ctl/client/declaration.ts');
  const file = readSiteFile(await readInputText(values.file, MAX_SITE_FILE_BYTES), values.file);
  const { prune, reason } = values;
  const compared = await declareSite(api, file, { prune, dryRun: true });
  const { steps, warnings, etag } = compared;
  for (const { code, message } of warnings) if (steps.length > 0) output.note(code, `warning: ${message}`);
  if (!values.dryRun) {
    const directory = await tokenDirectoryFor(steps, values);
    const removals = largeRemovals(file, steps).map(
      ({ kind, removed, before }) => `${removed} of ${before} (${kind})`,
    );
    if (removals.length > 0) {
      await confirm(`removes from ${file.siteId}: ${removals.join(', ')}`, values.yes, context);
    }
    const done =
      steps.length === 0
        ? compared
        : await declareSite(api, file, { prune, reason, dryRun: false, etag }).catch((error: unknown) => {
            throw withLostTokens(error, steps);
          });
    try {
      await keepTokens(done, directory);
      await awaitSources(api, done, file.siteId, values, output);
    } catch (error) {
      // The site has already changed, so the error shows how.
      const { lines, object } = resultOf(file.siteId, values, compared);
      output.result(lines.map(visibleText), object);
      throw error;
    }
  }
  if (values.detailedExitcode && steps.length > 0) output.endWith(EXIT_CODES.changed);
  return resultOf(file.siteId, values, compared);
}

function resultOf(siteId: string, { dryRun }: Values, { steps, unnamed, warnings }: Declared): CtlResult {
  return {
    lines: [...(steps.length === 0 ? ['nothing to do'] : steps.flatMap(linesOf)), ...keptLines(unnamed)],
    object: {
      site_id: siteId,
      dry_run: dryRun,
      steps,
      stays: unnamed,
      warnings: warnings.map(({ code, message, denied_seconds }) => ({ code, message, denied_seconds })),
    },
  };
}

async function awaitSources(
  api: ControlApi,
  { activating }: Declared,
  siteId: string,
  { activationTimeoutMs: timeoutMs }: Values,
  output: CliContext['output'],
): Promise<void> {
  const { awaitActive } = await import('../../ctl/client/await-active.ts');
  const onWaiting = progressReporter(output);
  for (const source of activating) await awaitActive(api, source, { siteId, timeoutMs, onWaiting });
}

/** Writes the tokens of new targets. @throws CliError `target_token_lost`, after it has tried them all */
async function keepTokens({ tokens }: Declared, directory: string): Promise<void> {
  const lost: string[] = [];
  for (const { target_id, name, token } of tokens) {
    const path = join(directory, tokenFileOf(name));
    await writeNewFile({ path, content: `${token}\n`, mode: 0o600 }).catch(() => lost.push(target_id));
  }
  if (lost[0] === undefined) return;
  const rotate = `proofgate ctl rotate-target-token ${lost[0]} --out FILE`;
  const text = `the site is applied, but the tokens of targets ${lost.join(', ')} could not be kept; make others: ${rotate}`;
  throw new CliError('refused', 'target_token_lost', text);
}

/** Control may have created a target before its answer with the token was lost. */
function withLostTokens(error: unknown, steps: Declared['steps']): unknown {
  const isLost = error instanceof OperatorError && error.code === 'control_unreachable';
  const targets = steps.filter(({ verb, kind }) => verb === 'create' && kind === 'target');
  if (!isLost || targets.length === 0) return error;
  const names = targets.map(({ name }) => name).join(', ');
  const advice = `All steps were applied, or none. If \`ctl get targets\` lists ${names}, make its token with \`ctl rotate-target-token\``;
  return new CliError('unreachable', 'control_unreachable', `${error.message} ${advice}`);
}

function linesOf({ verb, kind, name, changes = [] }: Step): readonly string[] {
  return [`${verb} ${kind} ${name}`, ...changes.map((change) => `    ${change}`)];
}

const MAX_KEPT_LINES = 20;

/** Lines about members that the file does not name. */
function keptLines(unnamed: Declared['unnamed']): readonly string[] {
  const lines = unnamed
    .slice(0, MAX_KEPT_LINES)
    .map(({ kind, name }) => `not in the file, kept: ${kind} ${name}`);
  const more = unnamed.length - lines.length;
  return more === 0 ? lines : [...lines, `not in the file, kept: ${more} more (--output json lists them)`];
}

/** Checks the token directory before any change, because a token that cannot be stored is lost. */
async function tokenDirectoryFor(steps: Declared['steps'], { tokenDir }: Values): Promise<string> {
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
  const exists = await lstat(path).then(
    () => true,
    () => false,
  );
  if (exists) throw usageError('file_exists', `${path} already exists; choose another --token-dir`);
}

const REPORT_INTERVAL_MS = 5000;

/** Shows progress: one line that is overwritten in a terminal, elsewhere a line every few seconds. */
function progressReporter(output: CliContext['output']): (text: string) => void {
  let reportedAtMs = performance.now();
  return (text) => {
    if (output.progress(text) || performance.now() - reportedAtMs < REPORT_INTERVAL_MS) return;
    reportedAtMs = performance.now();
    output.note('waiting', text);
  };
}
