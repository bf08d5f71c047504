/**
 * Declares the settings of commands. A setting is declared once, as a flag; its environment variable
 * (`PROOFGATE_<FLAG>`) and its member in a `--config` file follow from the flag.
 *
 *     const SETTINGS = {
 *       key: required(text('--key <file>', 'private key')),
 *       ttlMs: withDefault(duration('--ttl <duration>', 'life of the proof', { minMs: 1000 }), '60s'),
 *       headers: list(text('--header <line>', 'header to send'), '\n'),
 *       include: toggle('--include', 'show the head of the answer', false),
 *     };
 *
 * Source: docs/operate/cli.md "Settings".
 */
import { type CliError, usageError } from '../program/errors.ts';

/** Required YAML type of a value in a `--config` file, so that YAML's type conversion does not change the value. */
type FileScalar = 'string' | 'number' | 'boolean';

/** Behavior when no source has a value. */
type Absent<T> = { readonly kind: 'required' } | { readonly kind: 'value'; readonly value: T };

export interface Setting<T> {
  /** `bundle-key` for `--bundle-key`. */
  readonly flag: string;
  /** Other flags for the same setting, each with its variable and member. Different values for two of them are an error. */
  readonly aliases: readonly string[];
  /** `f` for `-f`; undefined without one. */
  readonly letter: string | undefined;
  /** `<file>`; undefined for a toggle, which takes no value. */
  readonly valueName: string | undefined;
  readonly description: string;
  /** All allowed values, if there are few. */
  readonly choices: readonly string[];
  readonly fileScalar: FileScalar;
  readonly repeatable: boolean;
  /** Separates the values of a repeatable setting in its environment variable. */
  readonly separator: string;
  readonly absent: Absent<T>;
  /**
   * Parses the values of one source: exactly one, unless the setting is repeatable.
   * @throws CliError with exit code 2
   */
  read(texts: readonly string[]): T;
}

/** A setting before `required`, `optional`, `withDefault` or `list` completes it. */
export interface SettingDraft<T> extends Omit<Setting<T>, 'absent' | 'read'> {
  /** @throws CliError with exit code 2 */
  readOne(text: string): T;
}

export type SettingDeclarations = { readonly [name: string]: Setting<unknown> };

/** The values of declared settings, by the names of their declarations. */
export type SettingValues<S extends SettingDeclarations> = {
  readonly [N in keyof S]: S[N] extends Setting<infer T> ? T : never;
};

const SPECIFICATION = /^--([a-z][a-z0-9-]*)(?: (<[^>]+>))?$/;

function draft<T>(
  specification: string,
  description: string,
  fileScalar: FileScalar,
  readOne: (text: string, flag: string) => T,
): SettingDraft<T> {
  const [, flag, valueName] = SPECIFICATION.exec(specification) ?? [];
  if (flag === undefined) throw new Error(`not a flag: ${specification}`);
  return {
    flag,
    aliases: [],
    letter: undefined,
    valueName,
    description,
    choices: [],
    fileScalar,
    repeatable: false,
    separator: '',
    readOne: (value) => readOne(value, flag),
  };
}

/** A setting whose value is any non-empty text. @param specification such as `--key <file>` */
export function text(specification: string, description: string): SettingDraft<string> {
  return draft(specification, description, 'string', (value, flag) => {
    if (value === '') throw usageError('bad_value', `--${flag} must not be empty`);
    return value;
  });
}

/** Adds an alias. @param flag such as `enrollment-policy` */
export function aliased<T>(setting: SettingDraft<T>, flag: string): SettingDraft<T> {
  return { ...setting, aliases: [...setting.aliases, flag] };
}

/** Adds a short flag. @param letter such as `f` for `-f` */
export function lettered<T>(setting: SettingDraft<T>, letter: string): SettingDraft<T> {
  return { ...setting, letter };
}

/**
 * Parses the value further, into the type of the setting.
 * @param parse throws CliError with exit code 2; `flag` is without its dashes
 */
export function parsed<T, U>(
  setting: SettingDraft<T>,
  parse: (value: T, flag: string) => U,
): SettingDraft<U> {
  return { ...setting, readOne: (text) => parse(setting.readOne(text), setting.flag) };
}

/** A setting whose value is one of the choices. */
export function choice<const C extends string>(
  specification: string,
  description: string,
  choices: readonly C[],
): SettingDraft<C> {
  const setting = draft(specification, `${description} (${choices.join(', ')})`, 'string', (value, flag) => {
    const found = choices.find((candidate) => candidate === value);
    if (found === undefined)
      throw usageError('bad_choice', `--${flag} must be one of: ${choices.join(', ')}`);
    return found;
  });
  return { ...setting, choices };
}

/** A setting whose value is an integer within inclusive bounds. */
export function integer(
  specification: string,
  description: string,
  bounds: { readonly min: number; readonly max: number },
): SettingDraft<number> {
  return draft(specification, description, 'number', (value, flag) => {
    const number = /^-?[0-9]+$/.test(value) ? Number(value) : Number.NaN;
    if (Number.isNaN(number)) throw usageError('bad_integer', `--${flag} must be a whole number`);
    if (number < bounds.min || number > bounds.max) {
      throw usageError('out_of_range', `--${flag} must be ${bounds.min} to ${bounds.max}`);
    }
    return number;
  });
}

/** The maximum of Node's timers, 2^31 - 1 ms, rounded down to whole hours for a readable message. */
const MAX_TIMER_MS = 596 * 3_600_000;

interface DurationBounds {
  readonly minMs?: number;
  readonly maxMs?: number;
  /** Error code for a duration outside the bounds, including a negative one; `out_of_range` by default. */
  readonly faultCode?: string;
}

/** A setting whose value is a duration within inclusive bounds, such as `500ms` or `1m30s`; read as milliseconds. */
export function duration(
  specification: string,
  description: string,
  bounds: DurationBounds = {},
): SettingDraft<number> {
  const { minMs = 1, maxMs = MAX_TIMER_MS, faultCode } = bounds;
  return draft(specification, description, 'string', (value, flag) => {
    const isNegative = faultCode !== undefined && value.startsWith('-');
    const sizeMs = parseDurationMs(isNegative ? value.slice(1) : value);
    const durationMs = isNegative && sizeMs !== undefined ? -sizeMs : sizeMs;
    if (durationMs === undefined) {
      throw usageError('bad_duration', `--${flag} must be a duration with unit, such as 500ms, 30s or 1m30s`);
    }
    if (durationMs < minMs || durationMs > maxMs) {
      throw usageError(
        faultCode ?? 'out_of_range',
        `--${flag} must be ${formatDurationMs(minMs)} to ${formatDurationMs(maxMs)}`,
      );
    }
    return durationMs;
  });
}

function only<T>(setting: SettingDraft<T>, texts: readonly string[]): T {
  const [first, ...more] = texts;
  if (first === undefined || more.length > 0) {
    throw usageError('flag_repeated', `--${setting.flag} may be given only once`);
  }
  return setting.readOne(first);
}

function settled<T, A>(setting: SettingDraft<T>, description: string, absent: Absent<A>): Setting<T | A> {
  return { ...setting, description, absent, read: (texts) => only(setting, texts) };
}

/** Makes a setting required: the command fails with `flag_required` without it. */
export function required<T>(setting: SettingDraft<T>): Setting<T> {
  return settled<T, T>(setting, `${setting.description} (required)`, { kind: 'required' });
}

/** Makes a setting optional: undefined without a value. */
export function optional<T>(setting: SettingDraft<T>): Setting<T | undefined> {
  return settled(setting, setting.description, { kind: 'value', value: undefined });
}

/** @param defaultText as a user would write it: parsed like any other value, and shown by `--help` */
export function withDefault<T>(setting: SettingDraft<T>, defaultText: string): Setting<T> {
  const value = setting.readOne(defaultText);
  return settled<T, T>(setting, `${setting.description} (default: ${defaultText})`, { kind: 'value', value });
}

/**
 * Makes a setting repeatable; the empty list without a value.
 * @param separator between values in the environment variable: a line break when values may contain commas
 */
export function list<T>(setting: SettingDraft<T>, separator: ',' | '\n' = ','): Setting<readonly T[]> {
  return {
    ...setting,
    description: `${setting.description} (repeatable)`,
    repeatable: true,
    separator,
    absent: { kind: 'value', value: [] },
    read: (texts) => texts.map((value) => setting.readOne(value)),
  };
}

/** Like {@link list}, but the command fails with `flag_required` without a value. */
export function requiredList<T>(
  setting: SettingDraft<T>,
  separator: ',' | '\n' = ',',
): Setting<readonly T[]> {
  const { description } = setting;
  return {
    ...list({ ...setting, description: `${description} (required)` }, separator),
    absent: { kind: 'required' },
  };
}

/** A boolean setting: `--name`, `--no-name`, `--name=true`, `--name=false`. */
export function toggle(specification: string, description: string, byDefault: boolean): Setting<boolean> {
  const setting = draft(specification, description, 'boolean', (value, flag) => {
    if (value === 'true' || value === '1') return true;
    if (value === 'false' || value === '0') return false;
    throw usageError('bad_boolean', `--${flag} must be true or false`);
  });
  const shown = byDefault ? `${description} (default: true)` : description;
  return settled<boolean, boolean>(setting, shown, { kind: 'value', value: byDefault });
}

/** Raw values of each setting, by flag; absent when the default applies. */
export type SettingTexts = ReadonlyMap<string, readonly string[]>;

/** @throws CliError with exit code 2 */
export function settingValue<T>(setting: Setting<T>, texts: SettingTexts): T {
  const given = texts.get(setting.flag);
  if (given !== undefined) return setting.read(given);
  if (setting.absent.kind === 'value') return setting.absent.value;
  throw flagsRequired([setting.flag]);
}

function flagsRequired(flags: readonly string[]): CliError {
  const names = flags.map((flag) => `--${flag}`).join(', ');
  return usageError('flag_required', `${names} ${flags.length === 1 ? 'is' : 'are'} required`);
}

/** @throws CliError with exit code 2 */
export function settingValues<S extends SettingDeclarations>(
  declarations: S,
  texts: SettingTexts,
): SettingValues<S> {
  const missing = Object.values(declarations).filter(
    ({ absent, flag }) => absent.kind === 'required' && !texts.has(flag),
  );
  if (missing.length > 1) throw flagsRequired(missing.map(({ flag }) => flag));
  const values = Object.entries(declarations).map(([name, setting]) => [name, settingValue(setting, texts)]);
  // Safe: each value was parsed by the setting of its name.
  return Object.fromEntries(values) as SettingValues<S>;
}

/** Parses and formats durations: integers with the units `h`, `m`, `s`, `ms` in this order, such as `1m30s` or `500ms`. */

const PARTS = /^(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m(?!s))?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?$/;

/** Milliseconds; undefined when the text is not a duration. */
export function parseDurationMs(text: string): number | undefined {
  const match = text === '' ? null : PARTS.exec(text);
  if (match === null) return undefined;
  const [, hours = '0', minutes = '0', seconds = '0', milliseconds = '0'] = match;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(milliseconds);
}

/** Formats whole milliseconds so that {@link parseDurationMs} returns the same value. */
export function formatDurationMs(durationMs: number): string {
  const hours = Math.floor(durationMs / 3_600_000);
  const minutes = Math.floor(durationMs / 60_000) % 60;
  const seconds = Math.floor(durationMs / 1000) % 60;
  const rest = durationMs % 1000;
  const parts = [part(hours, 'h'), part(minutes, 'm'), part(seconds, 's'), part(rest, 'ms')];
  return parts.join('') || '0s';
}

function part(count: number, unit: string): string {
  return count === 0 ? '' : `${count}${unit}`;
}
