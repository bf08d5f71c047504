/**
 * Holds a parsed document against its schema and says in plain words what does not fit.
 * Unknown members are refused everywhere: a misspelled restriction must not be a restriction that is missing.
 */
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { type BundleError, type BundleErrorCode, bundleError, Faults, pointer, showValue } from './errors.ts';
import {
  BUNDLE_CONTENT,
  type BundleContent,
  DELTA_CONTENT,
  DERIVED_KEY,
  type DeltaContent,
  type DerivedKeyContent,
  FRESHNESS_CONTENT,
  type FreshnessContent,
  LINK_CONTENT,
  type LinkContent,
  PATTERN_WORDS,
} from './schema.ts';

const bundleContent = Compile(BUNDLE_CONTENT);
const freshnessContent = Compile(FRESHNESS_CONTENT);
const deltaContent = Compile(DELTA_CONTENT);
const linkContent = Compile(LINK_CONTENT);
const derivedKey = Compile(DERIVED_KEY);

/** @throws BundleError for a value that is not shaped like a bundle's content. */
export function asBundleContent(value: unknown, file: string): BundleContent {
  if (bundleContent.Check(value)) return value;
  throw shapeError(value, bundleContent.Errors(value), file, '');
}

/** @throws BundleError for a value that is not shaped like a freshness statement. */
export function asFreshnessContent(value: unknown, file: string): FreshnessContent {
  if (freshnessContent.Check(value)) return value;
  throw shapeError(value, freshnessContent.Errors(value), file, '');
}

/** @throws BundleError for a value that is not shaped like a delta. */
export function asDeltaContent(value: unknown, file: string): DeltaContent {
  if (deltaContent.Check(value)) return value;
  throw shapeError(value, deltaContent.Errors(value), file, '');
}

/** @throws BundleError for a value that is not shaped like a link. */
export function asLinkContent(value: unknown, file: string): LinkContent {
  if (linkContent.Check(value)) return value;
  throw shapeError(value, linkContent.Errors(value), file, '');
}

/**
 * @param path where the value stands in the file
 * @throws BundleError for a value that is not shaped like a derived key.
 */
export function asDerivedKey(value: unknown, file: string, path: string): DerivedKeyContent {
  if (derivedKey.Check(value)) return value;
  throw shapeError(value, derivedKey.Errors(value), file, path);
}

function shapeError(
  value: unknown,
  errors: readonly TLocalizedValidationError[],
  file: string,
  path: string,
): BundleError {
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

function faultsOf(error: TLocalizedValidationError, document: unknown): readonly ShapeFault[] {
  const path = error.instancePath;
  // The schema's only choice is between kinds of key; what stands there is never shown.
  const keyPath = /^(?:.*\/)?jwk(?=\/|$)/.exec(path)?.[0];
  if (keyPath !== undefined) {
    return [{ code: 'key_refused', path: keyPath, text: 'neither an Ed25519 nor a P-256 public JWK' }];
  }
  switch (error.keyword) {
    case 'boolean':
      // Comes beside each additionalProperties.
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

function wantedBy(error: TLocalizedValidationError): string {
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
