/**
 * Candidates for the next word of an unfinished command line: commands, flags, choices, and IDs from Control.
 * Source: docs/operate/cli.md "Completion".
 */
import type { Command } from 'commander';
import type { Setting } from '../../process/settings/settings.ts';
import { KINDS_OF, kindOf } from '../ctl/resource-kinds.ts';
import type { ProofgateCommand } from '../define/define-command.ts';

/** Replaces the candidates where the shell completes paths itself. */
export const FILES = ':files';

/** A command line up to the word that is completed. */
export interface UnfinishedLine {
  readonly command: ProofgateCommand;
  /** Values by flag. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

/** IDs of the resources of a kind of `ctl get`, for the settings of the line. Never throws. */
export type FetchIds = (kind: string, line: UnfinishedLine) => Promise<readonly string[]>;

/** Positional arguments and flags that name a resource, by the kind of `ctl get`. */
const KIND_OF_NAME: { readonly [name: string]: string } = {
  'access-token': 'access-tokens',
  client: 'clients',
  enrollment: 'enrollments',
  environment: 'environments',
  key: 'keys',
  policy: 'policies',
  site: 'sites',
  source: 'sources',
  target: 'targets',
};
const FILE_NAMES: ReadonlySet<string> = new Set(['file', 'directory', 'old', 'new', 'source']);

/** @param words without the program's name; the last one is completed, and may be empty */
export async function candidatesFor(
  words: readonly string[],
  program: ProofgateCommand,
  fetchIds: FetchIds,
): Promise<readonly string[]> {
  const last = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const { line, waiting } = readLine(before, program);
  const [, flag, value] = /^--([a-z0-9-]+)=(.*)$/s.exec(last) ?? [];
  if (flag !== undefined && value !== undefined) {
    const setting = settingOf(line.command, `--${flag}`);
    const values = setting === undefined ? [] : await valuesOf(setting, line, fetchIds);
    return values.includes(FILES)
      ? []
      : starting(
          last,
          values.map((each) => `--${flag}=${each}`),
        );
  }
  const found =
    waiting !== undefined
      ? await valuesOf(waiting, line, fetchIds)
      : last.startsWith('-')
        ? flagsOf(line.command)
        : await positionalsOf(line, fetchIds);
  return found.includes(FILES) ? [FILES] : starting(last, found);
}

/** Shells insert candidates unchanged, so a name from Control must not be able to contain a command. */
const HARMLESS = /^[\w.,:@/+=-]+$/;

const starting = (prefix: string, texts: readonly string[]) =>
  texts.filter((text) => text.startsWith(prefix) && HARMLESS.test(text)).sort();

/** @returns the setting whose value comes next, if the last word is its flag */
function readLine(
  words: readonly string[],
  program: ProofgateCommand,
): { readonly line: UnfinishedLine; readonly waiting: Setting<unknown> | undefined } {
  let command = program;
  let waiting: Setting<unknown> | undefined;
  const flags = new Map<string, readonly string[]>();
  const positionals: string[] = [];
  const keep = (setting: Setting<unknown>, value: string) =>
    flags.set(setting.flag, [...(flags.get(setting.flag) ?? []), value]);
  for (const word of words) {
    if (waiting !== undefined) {
      keep(waiting, word);
      waiting = undefined;
      continue;
    }
    const [, flag = word, value] = /^(--[a-z0-9-]+)=(.*)$/s.exec(word) ?? [];
    const setting = settingOf(command, flag);
    const member = positionals.length === 0 ? memberOf(command, word) : undefined;
    if (setting?.valueName !== undefined && value !== undefined) keep(setting, value);
    else if (setting?.valueName !== undefined) waiting = setting;
    else if (member !== undefined) command = member;
    else if (!word.startsWith('-')) positionals.push(word);
  }
  return { line: { command, flags, positionals }, waiting };
}

function memberOf(command: ProofgateCommand, word: string): ProofgateCommand | undefined {
  return command.commands.find((member) => member.name() === word) as ProofgateCommand | undefined;
}

function settingOf({ settings }: ProofgateCommand, flag: string): Setting<unknown> | undefined {
  return settings.find(
    (setting) =>
      flag === `-${setting.letter}` ||
      [setting.flag, ...setting.aliases].some((name) => flag === `--${name}`),
  );
}

function flagsOf(command: Command): readonly string[] {
  const declared = command.options.flatMap(({ hidden, long }) => (hidden || !long ? [] : [long]));
  return [...declared, '--help'];
}

async function valuesOf(
  { choices, flag, valueName = '' }: Setting<unknown>,
  line: UnfinishedLine,
  fetchIds: FetchIds,
): Promise<readonly string[]> {
  if (choices.length > 0) return choices;
  const kind = kindNamed(flag, line);
  if (kind !== undefined) return fetchIds(kind, line);
  return FILE_NAMES.has(valueName.slice(1, -1)) ? [FILES] : [];
}

/** Only commands of `ctl` know Control. */
function kindNamed(name: string, { command }: UnfinishedLine): string | undefined {
  const { parent } = command;
  const isOfCtl = parent?.name() === 'ctl' || parent?.parent?.name() === 'ctl';
  return isOfCtl ? KIND_OF_NAME[name] : undefined;
}

function isKindsCommand(name: string): name is keyof typeof KINDS_OF {
  return Object.hasOwn(KINDS_OF, name);
}

async function positionalsOf(line: UnfinishedLine, fetchIds: FetchIds): Promise<readonly string[]> {
  const { command, positionals } = line;
  const members = positionals.length === 0 ? command.commands.map((member) => member.name()) : [];
  const argument = command.registeredArguments[positionals.length]?.name();
  if (argument === undefined) return members;
  const verb = command.name();
  const kinds = isKindsCommand(verb) ? KINDS_OF[verb] : [];
  // `ctl get KIND NAME`
  const given = argument === 'name' ? kindOf(positionals[0] ?? '', kinds) : undefined;
  const kind = given?.one === undefined ? kindNamed(argument, line) : given.name;
  if (kind !== undefined) return fetchIds(kind, line);
  if (FILE_NAMES.has(argument)) return [FILES];
  if (argument === 'kind') return kinds;
  if (argument === 'method') return ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];
  return members;
}
