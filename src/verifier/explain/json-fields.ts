/**
 * Reads members of objects in a captured request; a fault is `request_invalid` with the JSON path. Errors never quote values
 * or unknown names, because a capture can contain credentials anywhere.
 */

import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { isWellKnownMember } from '../decision/explain/well-known-names.ts';
import { ExplainInputError } from './explain-input-error.ts';

export function requestInvalid(path: string, problem: string): ExplainInputError {
  return new ExplainInputError('request_invalid', `${path === '' ? '/' : path}: ${problem}`);
}

/** @param known the allowed values */
export function notAMember(path: string, known: readonly string[]): ExplainInputError {
  return requestInvalid(path, `unknown member; allowed: ${known.join(', ')}`);
}

/** An object with its path in the document. */
export class JsonFields {
  readonly path: string;
  readonly #object: JsonObject;
  readonly #spelledAs: ReadonlyMap<string, string>;

  /**
   * @param spelledAs spelling of renamed members in the document
   * @throws ExplainInputError `request_invalid`
   */
  constructor(value: unknown, path: string, spelledAs: ReadonlyMap<string, string> = new Map()) {
    if (!isJsonObject(value)) throw requestInvalid(path, 'must be an object');
    this.path = path;
    this.#object = value;
    this.#spelledAs = spelledAs;
  }

  get members(): JsonObject {
    return this.#object;
  }

  get names(): readonly string[] {
    return Object.keys(this.#object);
  }

  /** `/headers/host`; `/headers/member 3`, counted from 1, for an unknown name. */
  at(name: string): string {
    const spelled = this.#spelledAs.get(name) ?? name;
    const shown = isWellKnownMember(spelled) ? spelled : `member ${this.names.indexOf(name) + 1}`;
    return `${this.path}/${shown}`;
  }

  /** @throws ExplainInputError for any other member */
  only(known: readonly string[]): void {
    const unknown = this.names.find((name) => !known.includes(name));
    if (unknown !== undefined) throw notAMember(this.at(unknown), known);
  }

  /** Null counts as absent, as in the JSON form of protobuf. */
  value(name: string): unknown {
    return Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
  }

  text(name: string): string | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === 'string') return value;
    throw requestInvalid(this.at(name), 'must be text');
  }

  integer(name: string): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
    throw requestInvalid(this.at(name), 'must be a whole number');
  }

  object(name: string): JsonFields | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : new JsonFields(value, this.at(name));
  }

  items(name: string): readonly unknown[] | undefined {
    const value = this.value(name);
    if (value === undefined || Array.isArray(value)) return value;
    throw requestInvalid(this.at(name), 'must be a list');
  }

  /** base64 in either alphabet, padded or not, as protobuf's JSON form allows. */
  bytes(name: string): Buffer | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const canonical = text
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replace(/={1,2}$/, '');
    const bytes = Buffer.from(canonical, 'base64url');
    if (bytes.toString('base64url') !== canonical) throw requestInvalid(this.at(name), 'must be base64');
    return bytes;
  }
}
