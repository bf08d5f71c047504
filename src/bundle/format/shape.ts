/**
 * Validates a parsed document against its schema and describes faults in plain words. Unknown members are rejected
 * everywhere: a misspelled restriction must not be ignored.
 */

import { readFileSync } from 'node:fs';
import type { TLocalizedValidationError } from 'typebox/error';
import { Compile } from 'typebox/schema';
import {
  type BundleError,
  type BundleErrorCode,
  bundleError,
  Faults,
  pointer,
  showValue,
} from './bundle-error.ts';
import { PATTERN_WORDS } from './patterns.ts';
import type { ContentOf, DerivedKeyContent } from './schema.ts';

/**
 * The JSON Schemas that checks compile, beside this file: `make schemas` writes them. Programs load them in place of the code
 * that builds schemas: docs/operate/performance.md "What idle programs take".
 */
const FILES = {
  'break-glass': './schemas/break-glass.schema.json',
  bundle: './schemas/bundle.schema.json',
  delta: './schemas/delta.schema.json',
  freshness: './schemas/freshness.schema.json',
  link: './schemas/link.schema.json',
  'target-bundle': './schemas/target-bundle.schema.json',
} as const;
type PublishedSchema = keyof typeof FILES;

/**
 * @param path members that lead to a part of the schema; without it, the whole
 * @throws Error when the file is missing or has no such part: the installation is broken
 */
export function publishedSchema(name: PublishedSchema, path: readonly string[] = []): object {
  let schema: unknown = JSON.parse(readFileSync(new URL(FILES[name], import.meta.url), 'utf8'));
  for (const member of path) {
    schema = isObject(schema) ? Object.getOwnPropertyDescriptor(schema, member)?.value : undefined;
  }
  if (!isObject(schema)) throw new Error(`${FILES[name]} has no schema at /${path.join('/')}`);
  return schema;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

const CONTENT: { readonly [K in keyof ContentOf]: ShapeCheck<ContentOf[K]> } = {
  bundle: shapeCheck(publishedSchema('bundle')),
  delta: shapeCheck(publishedSchema('delta')),
  link: shapeCheck(publishedSchema('link')),
  freshness: shapeCheck(publishedSchema('freshness')),
  breakGlass: shapeCheck(publishedSchema('break-glass')),
};
const derivedKey: ShapeCheck<DerivedKeyContent> = shapeCheck(
  publishedSchema('bundle', ['properties', 'derived_keys', 'items']),
);

/** @throws BundleError for a value that is not the content of such a document. */
export function asContent<K extends keyof ContentOf>(kind: K, value: unknown, file: string): ContentOf[K] {
  return checked(CONTENT[kind], value, file, '');
}

/**
 * @param path the value's position in the file
 * @throws BundleError for a value that is not a derived key.
 */
export function asDerivedKey(value: unknown, file: string, path: string): DerivedKeyContent {
  return checked(derivedKey, value, file, path);
}

function checked<T>(check: ShapeCheck<T>, value: unknown, file: string, path: string): T {
  if (check.holds(value)) return value;
  throw shapeError(value, check.errors(value), file, path);
}

function shapeError(value: unknown, errors: readonly ShapeError[], file: string, path: string): BundleError {
  const faults = new Faults(file);
  const seen = new Set<string>();
  for (const error of errors) {
    for (const fault of faultsOf(error, value)) {
      const key = `${fault.code} ${fault.path}`;
      if (!seen.has(key)) faults.add(fault.code, path + fault.path, fault.text);
      seen.add(key);
    }
  }
  return faults.toError() ?? bundleError('value_invalid', file, path, 'not in the format');
}

interface ShapeFault {
  readonly code: BundleErrorCode;
  readonly path: string;
  readonly text: string;
}

function faultsOf(error: ShapeError, document: unknown): readonly ShapeFault[] {
  const path = error.instancePath;
  // The schema's only union is between kinds of key, whose content is never shown.
  const keyPath = /^(?:.*\/)?jwk(?=\/|$)/.exec(path)?.[0];
  if (keyPath !== undefined) {
    const text = keyPath.startsWith('/oauth_issuers/')
      ? 'no public JWK of Ed25519, P-256 or RSA that has the members of its key alone'
      : 'neither an Ed25519 nor a P-256 public JWK';
    return [{ code: 'key_refused', path: keyPath, text }];
  }
  switch (error.keyword) {
    case 'boolean':
      // Accompanies each additionalProperties error.
      return [];
    case 'additionalProperties':
      return error.params.additionalProperties.map((name) => ({
        code: 'unknown_member',
        path: path + pointer(name),
        text: 'unknown member',
      }));
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        code: 'missing_member',
        path: path + pointer(name),
        text: 'missing',
      }));
    case 'uniqueItems':
      return [{ code: 'duplicate', path, text: 'an entry occurs twice' }];
    default: {
      const text = `must be ${wantedBy(error)}, is ${showValue(valueAt(document, path))}`;
      return [{ code: 'value_invalid', path, text }];
    }
  }
}

function wantedBy(error: ShapeError): string {
  switch (error.keyword) {
    case 'enum':
      return error.params.allowedValues.map(showValue).join(' or ');
    case 'const':
      return showValue(error.params.allowedValue);
    case 'pattern':
      return PATTERN_WORDS.get(String(error.params.pattern)) ?? `like ${String(error.params.pattern)}`;
    default:
      return error.message.replace(/^must (?:be )?/, '');
  }
}

function valueAt(document: unknown, path: string): unknown {
  let value = document;
  for (const step of path.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    value = Object.getOwnPropertyDescriptor(value, name)?.value;
  }
  return value;
}

/**
 * Validates a value against a JSON Schema. Imports only the checking half of TypeBox: the half that builds schemas
 * would take as much again of a verifier's load time and memory. Source: docs/operate/performance.md "What idle programs take".
 */

type ShapeError = TLocalizedValidationError;

export interface ShapeCheck<T> {
  readonly holds: (value: unknown) => value is T;
  /** Why the value is invalid. */
  readonly errors: (value: unknown) => readonly ShapeError[];
}

/** @typeParam T the type that the schema describes; test/bundle/format/published.test.ts compares the schema with the one that T comes from */
export function shapeCheck<T>(schema: object): ShapeCheck<T> {
  const validator = Compile(schema);
  return {
    holds: (value): value is T => validator.Check(value),
    errors: (value) => validator.Errors(value)[1],
  };
}
