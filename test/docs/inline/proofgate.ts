/** Parses command lines with the program's own parser, without running a command. */
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { buildProgram } from '../../../src/cli/program.ts';
import { Output } from '../../../src/process/program/output.ts';
import { variableOf } from '../../../src/process/settings/setting-sources.ts';

async function program(): Promise<Command> {
  const output = new Output(new PassThrough(), new PassThrough(), {});
  const built = await buildProgram({ env: {}, output, version: '0.0.0' });
  for (const command of commandsOf(built)) if (command.commands.length === 0) command.action(() => {});
  return built;
}

function commandsOf(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap((one) => commandsOf(one))];
}

const ALL = commandsOf(await program()).map((command) => ({ command, path: pathOf(command) }));
const PATHS = new Set(ALL.map(({ path }) => path));

function pathOf(command: Command): string {
  return command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();
}

/** Commands with subcommands, such as `bundle`. */
export const GROUPS: readonly string[] = ALL.filter(
  ({ command, path }) => command.commands.length > 0 && path !== '',
).map(({ path }) => path);

/** `sign`; for `ctl`, `apply`. */
export function commandsBelow(group: string): readonly string[] {
  return ALL.filter(
    ({ command }) =>
      command.parent !== null && pathOf(command.parent) === group && command.commands.length === 0,
  ).map(({ command }) => command.name());
}

export const FLAGS: ReadonlySet<string> = new Set(
  ALL.flatMap(({ command }) => command.options.flatMap(({ long }) => long ?? [])).concat('--help'),
);

export const VARIABLES: ReadonlySet<string> = new Set([...FLAGS].map((flag) => variableOf(flag.slice(2))));

/**
 * The parser error of a line. A line without operands or required flags only mentions a command, so it is valid.
 * @param words without `proofgate`
 */
export async function faultOfLine(words: readonly string[]): Promise<string | undefined> {
  const given = words.filter((word) => !/^<[^>]*>$/.test(word));
  if (given.length < words.length && given.length === 1 && given[0] === '--help') return undefined;
  let depth = 0;
  while (depth < given.length && PATHS.has(given.slice(0, depth + 1).join(' '))) depth += 1;
  const [path, rest] = [given.slice(0, depth).join(' '), given.slice(depth)];
  const command = ALL.find((one) => one.path === path)?.command;
  if (command === undefined) return `no command ${path}`;
  if (rest.length === 0) return undefined;
  try {
    const { operands } = command.parseOptions([...rest, ...lastValue(command, rest)]);
    const required = command.registeredArguments.filter((one) => one.required).map((one) => one.name());
    const missing = operands.length === 0 ? required : [];
    await (await program()).parseAsync([...given, ...lastValue(command, rest), ...missing], { from: 'user' });
    return undefined;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return /^commander\.(?:help|version)/.test(code ?? '') ? undefined : message;
  }
}

/** A value for a last flag whose value the text leaves out. */
function lastValue(command: Command, rest: readonly string[]): readonly string[] {
  const last = command.options.find(({ long, short }) => rest.at(-1) === long || rest.at(-1) === short);
  return last?.required === true ? ['value'] : [];
}
