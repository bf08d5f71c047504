/**
 * Converts a command's declaration to a commander command with flags, help, and an action that first reads the settings from
 * all sources. Commander only parses the command line; `settings.ts` validates values.
 */
import { Command, Option } from 'commander';
import { usageError } from '../../process/program/errors.ts';
import { type CliContext, OUTPUT_FORMATS } from '../../process/program/output.ts';
import {
  CONFIG_SETTING,
  collectTexts,
  settingValue,
  settingValues,
  variableOf,
} from '../../process/settings/setting-sources.ts';
import {
  choice,
  type Setting,
  type SettingDeclarations,
  type SettingValues,
  withDefault,
} from '../../process/settings/settings.ts';

export type { CliContext };

/** Positional arguments in order: descriptions by name. A name that ends in `?` is optional. */
export type PositionalDeclarations = { readonly [name: string]: string };

/** Values by name without the question mark. */
type PositionalValues<P extends PositionalDeclarations> = {
  readonly [N in keyof P as N extends `${infer Name}?` ? Name : N]: N extends `${string}?`
    ? string | undefined
    : string;
};

export interface CommandInput<S extends SettingDeclarations, P extends PositionalDeclarations> {
  readonly settings: SettingValues<S>;
  readonly positionals: PositionalValues<P>;
}

export interface CommandDeclaration<S extends SettingDeclarations, P extends PositionalDeclarations> {
  readonly name: string;
  /** One line with a capital first letter and without a full stop. */
  readonly summary: string;
  readonly positionals?: P;
  /** Every command also has `--config` and `--output`. */
  readonly settings: S;
  /** Complete command lines. */
  readonly examples: readonly string[];
  /** Commands below this one, such as `broker rotate-key`. */
  readonly members?: readonly CommandLineNode[];
  /** Checks the positional arguments before any setting is required. @throws CliError */
  check?(positionals: PositionalValues<P>): void;
  /** Imports heavy modules itself, so that other commands start faster. @throws CliError */
  run(input: CommandInput<S, P>, context: CliContext): Promise<void>;
}

const OUTPUT_SETTING = withDefault(choice('--output <format>', 'output format', OUTPUT_FORMATS), 'text');

/** A command whose toggles also accept `true` and `false`, after `=` or as the next word, which commander does not support. */
export class ProofgateCommand extends Command {
  readonly #toggles = new Set<string>();
  /** All settings of the command, including `--config` and `--output`; a group has none. */
  settings: readonly Setting<unknown>[] = [];

  override createCommand(name?: string): ProofgateCommand {
    return new ProofgateCommand(name);
  }

  addToggle(flag: string): void {
    this.#toggles.add(flag);
  }

  override parseOptions(args: string[]) {
    const end = args.indexOf('--');
    const flags = end === -1 ? args : args.slice(0, end);
    const plain = this.#joined(flags).map((arg) => this.#plainToggle(arg));
    return super.parseOptions([...plain, ...args.slice(flags.length)]);
  }

  /** Converts `--toggle false` to `--toggle=false`. */
  #joined(args: readonly string[]): readonly string[] {
    return args.flatMap((arg, index) => {
      const isValueOf = (toggle: string | undefined) =>
        toggle?.startsWith('--') && this.#toggles.has(toggle.slice(2));
      const isValue = arg === 'true' || arg === 'false';
      if (isValue && isValueOf(args[index - 1])) return [];
      const next = args[index + 1];
      return isValueOf(arg) && (next === 'true' || next === 'false') ? [`${arg}=${next}`] : [arg];
    });
  }

  #plainToggle(arg: string): string {
    const [, flag = '', value] = /^--([a-z][a-z0-9-]*)=(.*)$/s.exec(arg) ?? [];
    if (!this.#toggles.has(flag)) return arg;
    if (value === 'true') return `--${flag}`;
    if (value === 'false') return `--no-${flag}`;
    throw usageError('bad_boolean', `--${flag} must be true or false`);
  }
}

/** A command, or a group of commands. */
export interface CommandLineNode {
  addTo(parent: ProofgateCommand, context: CliContext): void;
}

export function command<S extends SettingDeclarations, P extends PositionalDeclarations>(
  declaration: CommandDeclaration<S, P>,
): CommandLineNode {
  return { addTo: (parent, context) => addCommand(parent, context, declaration) };
}

/** @param name such as `bundle` */
export function group(name: string, summary: string, members: readonly CommandLineNode[]): CommandLineNode {
  return {
    addTo(parent, context) {
      const added = parent.createCommand(name).copyInheritedSettings(parent);
      parent.addCommand(added);
      added.description(summary).helpCommand(false).enablePositionalOptions();
      for (const member of members) member.addTo(added, context);
    },
  };
}

function addCommand<S extends SettingDeclarations, P extends PositionalDeclarations>(
  parent: ProofgateCommand,
  context: CliContext,
  declaration: CommandDeclaration<S, P>,
): void {
  const command = parent.createCommand(declaration.name).copyInheritedSettings(parent);
  parent.addCommand(command);
  command.description(declaration.summary).addHelpText('after', helpText(declaration.examples));
  const names = Object.keys(declaration.positionals ?? {});
  for (const name of names) {
    const shown = name.endsWith('?') ? `[${name.slice(0, -1)}]` : `<${name}>`;
    command.argument(shown, declaration.positionals?.[name]);
  }
  const settings = [...Object.values(declaration.settings), CONFIG_SETTING, OUTPUT_SETTING];
  command.settings = settings;
  const flags = new Map<string, string[]>();
  for (const setting of settings) declareFlag(command, setting, flags);
  command.action(async () => {
    const texts = await collectTexts(settings, { flags, env: context.env });
    context.output.useFormat(settingValue(OUTPUT_SETTING, texts));
    const positionals: PositionalValues<P> = positionalValues(names, command);
    declaration.check?.(positionals);
    await declaration.run({ settings: settingValues(declaration.settings, texts), positionals }, context);
  });
  if (declaration.members === undefined) return;
  // A flag before the member's name would belong to the parent; after it, to the member.
  command.helpCommand(false).enablePositionalOptions();
  for (const member of declaration.members) member.addTo(command, context);
}

/** @param given filled while commander parses, in the order of the command line */
function declareFlag(
  command: ProofgateCommand,
  setting: Setting<unknown>,
  given: Map<string, string[]>,
): void {
  const { flag, valueName, description } = setting;
  if (valueName !== undefined) {
    const letter = setting.letter === undefined ? '' : `-${setting.letter}, `;
    command.addOption(new Option(`${letter}--${flag} ${valueName}`, description));
    command.on(`option:${flag}`, (value) => keepText(given, flag, value));
    for (const alias of setting.aliases) {
      command.addOption(new Option(`--${alias} ${valueName}`, `the same as --${flag}`));
      command.on(`option:${alias}`, (value) => keepText(given, alias, value));
    }
    return;
  }
  if (setting.aliases.length > 0) throw new Error(`a toggle has no aliases: ${flag}`);
  const byDefault = setting.absent.kind === 'value' && setting.absent.value === true;
  command.addToggle(flag);
  command.addOption(new Option(`--${flag}`, description));
  command.addOption(new Option(`--no-${flag}`, `the opposite of --${flag}`).hideHelp(!byDefault));
  command.on(`option:${flag}`, () => keepText(given, flag, 'true'));
  command.on(`option:no-${flag}`, () => keepText(given, flag, 'false'));
}

function keepText(given: Map<string, string[]>, flag: string, value: string): void {
  given.set(flag, [...(given.get(flag) ?? []), value]);
}

function positionalValues<P extends PositionalDeclarations>(
  names: readonly string[],
  command: Command,
): PositionalValues<P> {
  // Commander has already rejected a line with more or fewer arguments.
  const entries = names.map((name, i) =>
    name.endsWith('?') ? [name.slice(0, -1), command.args[i]] : [name, command.args[i] ?? ''],
  );
  return Object.fromEntries(entries) as PositionalValues<P>;
}

function helpText(examples: readonly string[]): string {
  const lines = examples.map((example) => `  ${example}`).join('\n');
  const variable = variableOf('flag').replace('FLAG', '<FLAG>');
  return `\nExamples:\n${lines}\n\nEvery flag can also be given as ${variable}, or in a --config file.`;
}
