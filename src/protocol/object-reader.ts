/** Reads an untrusted object member by member. An error names the place of the fault. */
import { isJsonObject, type JsonObject } from './strict-json.ts';

/** Makes the error for a fault. @param place such as `profiles[0].method`; empty for the whole document */
export type FaultAt = (place: string, problem: string) => Error;

export class ObjectReader {
  readonly #faultAt: FaultAt;
  readonly #place: string;
  readonly #object: JsonObject;

  /** @throws the error of `faultAt`, here and in every method */
  constructor(value: unknown, place: string, faultAt: FaultAt) {
    this.#faultAt = faultAt;
    this.#place = place;
    if (!isJsonObject(value)) this.fail('', 'must be a mapping');
    this.#object = value;
  }

  rejectUnknownMembers(known: readonly string[]): void {
    const unknown = Object.keys(this.#object).find((member) => !known.includes(member));
    if (unknown !== undefined) this.fail(unknown, 'is not a member of this format');
  }

  required<T>(member: string, accepts: (value: unknown) => value is T, rule: string): T {
    if (!Object.hasOwn(this.#object, member)) this.fail(member, 'is missing');
    const value = this.#object[member];
    if (!accepts(value)) this.fail(member, `must be ${rule}`);
    return value;
  }

  optional<T>(member: string, accepts: (value: unknown) => value is T, rule: string): T | undefined {
    return Object.hasOwn(this.#object, member) ? this.required(member, accepts, rule) : undefined;
  }

  object(member: string): ObjectReader {
    if (!Object.hasOwn(this.#object, member)) this.fail(member, 'is missing');
    return new ObjectReader(this.#object[member], this.#at(member), this.#faultAt);
  }

  optionalObject(member: string): ObjectReader | undefined {
    return Object.hasOwn(this.#object, member) ? this.object(member) : undefined;
  }

  items(member: string): readonly ObjectReader[] {
    const values = this.required(member, isArray, 'a list');
    return values.map((value, i) => new ObjectReader(value, this.#at(`${member}[${i}]`), this.#faultAt));
  }

  /** A list of distinct texts; empty when absent. */
  texts(
    member: string,
    accepts: (value: unknown) => value is string,
    rule: string,
    minCount: number,
  ): readonly string[] {
    const values = this.optional(member, isArray, 'a list') ?? [];
    if (values.length < minCount) this.fail(member, 'is missing or empty');
    return values.map((value, i) => {
      if (!accepts(value)) this.fail(`${member}[${i}]`, `must be ${rule}`);
      if (values.indexOf(value) !== i) this.fail(`${member}[${i}]`, 'stands in the list twice');
      return value;
    });
  }

  fail(member: string, problem: string): never {
    throw this.#faultAt(this.#at(member), problem);
  }

  #at(member: string): string {
    return this.#place === '' || member === '' ? `${this.#place}${member}` : `${this.#place}.${member}`;
  }
}

/** A text that passes the test. */
export function textThat(test: (text: string) => boolean): (value: unknown) => value is string {
  return (value): value is string => typeof value === 'string' && test(value);
}

/** A text that matches the pattern. */
export function textLike(pattern: RegExp): (value: unknown) => value is string {
  return textThat((text) => pattern.test(text));
}

export function oneOf<T>(values: readonly T[]): (value: unknown) => value is T {
  return (value): value is T => values.some((known) => known === value);
}

function isArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
