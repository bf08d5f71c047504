/**
 * Reads the values of settings, in this order of precedence: flag, environment variable, `--config` file, default.
 * Source: docs/operate/cli.md "Settings".
 */

import { readInputText } from '../files/input-files.ts';
import { usageError } from '../program/errors.ts';
import type { Environment } from '../program/output.ts';
import { optional, type Setting, type SettingTexts, settingValue, text } from './settings.ts';

export { type SettingTexts, settingValue, settingValues } from './settings.ts';

/** Raw values from the command line, by flag; absent when the flag was not given. */
type GivenFlags = ReadonlyMap<string, readonly string[]>;

export interface SettingSources {
  readonly flags: GivenFlags;
  readonly env: Environment;
}

const MAX_CONFIG_BYTES = 1024 * 1024;

export const CONFIG_SETTING = optional(text('--config <file>', 'YAML file with settings of this command'));

/** `PROOFGATE_BUNDLE_KEY` for `bundle-key`. */
export function variableOf(flag: string): string {
  return `PROOFGATE_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/** `bundle_key` for `bundle-key`. */
export function memberOf(flag: string): string {
  return flag.replaceAll('-', '_');
}

/**
 * Takes each setting from the source of highest precedence that has it.
 * @param settings all settings of the command: any other member of its file is rejected
 * @throws CliError with exit code 2
 */
export async function collectTexts(
  settings: readonly Setting<unknown>[],
  sources: SettingSources,
): Promise<SettingTexts> {
  const given = new Map<string, readonly string[]>();
  for (const setting of settings) {
    const texts =
      textsOfNames(setting, (flag) => sources.flags.get(flag), flagOf) ??
      textsOfNames(setting, (flag) => textsOfVariable(setting, sources.env[variableOf(flag)]), variableOf);
    if (texts !== undefined) given.set(setting.flag, texts);
  }
  const configFile = settingValue(CONFIG_SETTING, given);
  if (configFile === undefined) return given;
  return new Map([...(await readConfigFile(configFile, settings)), ...given]);
}

function flagOf(flag: string): string {
  return `--${flag}`;
}

/**
 * The values of a setting in one source, under its flag or its aliases.
 * @param nameOf name of a flag in that source
 * @throws CliError `aliases_differ`
 */
function textsOfNames(
  setting: Setting<unknown>,
  textsOf: (flag: string) => readonly string[] | undefined,
  nameOf: (flag: string) => string,
): readonly string[] | undefined {
  const named = [setting.flag, ...setting.aliases].flatMap((flag) => {
    const texts = textsOf(flag);
    return texts === undefined ? [] : [{ name: nameOf(flag), texts }];
  });
  const [first, ...others] = named;
  const other = others.find(({ texts }) => texts.join('\n') !== first?.texts.join('\n'));
  if (other !== undefined) {
    throw usageError(
      'aliases_differ',
      `${first?.name} and ${other.name} are the same setting: give one of them`,
    );
  }
  return first?.texts;
}

/** An empty variable counts as one that is not set. */
function textsOfVariable(
  setting: Setting<unknown>,
  value: string | undefined,
): readonly string[] | undefined {
  if (value === undefined || value === '') return undefined;
  if (!setting.repeatable) return [value];
  return value
    .split(setting.separator)
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

async function readConfigFile(file: string, settings: readonly Setting<unknown>[]): Promise<SettingTexts> {
  const config = await parseConfig(await readInputText(file, MAX_CONFIG_BYTES), file);
  const given = new Map<string, readonly string[]>();
  for (const [member, value] of Object.entries(config)) {
    const setting = settings.find(({ flag, aliases }) => [flag, ...aliases].map(memberOf).includes(member));
    // A `config` member is rejected: with two files the precedence would be unclear.
    if (setting === undefined || setting === CONFIG_SETTING) {
      throw usageError('config_unknown_member', `${file}: ${member} is not a setting of this command`);
    }
    given.set(member, textsOfMember(setting, value, `${file}: ${member}`));
  }
  const texts = new Map<string, readonly string[]>();
  for (const setting of settings) {
    const ofSetting = textsOfNames(setting, (flag) => given.get(memberOf(flag)), memberOf);
    if (ofSetting !== undefined) texts.set(setting.flag, ofSetting);
  }
  return texts;
}

async function parseConfig(content: string, file: string): Promise<object> {
  // Loaded on demand: the parser costs more than the rest of a command's startup.
  const { parseStrictYaml, StrictYamlError } = await import('../../protocol/strict-yaml.ts');
  try {
    const value = parseStrictYaml(content);
    if (value === null) return {};
    if (typeof value === 'object' && !Array.isArray(value)) return value;
  } catch (error) {
    if (error instanceof StrictYamlError) throw usageError('config_invalid', `${file}: ${error.message}`);
    throw error;
  }
  throw usageError('config_invalid', `${file}: must be a mapping from setting to value`);
}

function textsOfMember(setting: Setting<unknown>, value: unknown, place: string): readonly string[] {
  const items: readonly unknown[] = Array.isArray(value) && setting.repeatable ? value : [value];
  return items.map((item) => {
    if (typeof item !== setting.fileScalar) {
      const kind = setting.repeatable ? `${setting.fileScalar}, or a list of them` : setting.fileScalar;
      throw usageError('config_invalid', `${place}: must be a ${kind}`);
    }
    return String(item);
  });
}
