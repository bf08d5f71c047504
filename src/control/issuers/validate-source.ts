/**
 * Validates a source against its issuer: the metadata must match what the operator entered, and the key set must be
 * readable. Source: specification "Trust Anchor Source"; docs/operate/control.md "Trust Anchor Source"; Discovery 1.0 section 4.3.
 */

import { hash } from 'node:crypto';
import type { Failure } from '../../process/outbound-fetch/fetch-failures.ts';
import type { UrlReading } from '../../process/outbound-fetch/fetchable-url.ts';
import type { JsonFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { SourceFailureCode } from './fetch-key-set.ts';
import { fetchKeySet } from './fetch-key-set.ts';
import { discoveryUrlOf, readIssuerUrl, readKeySetUrl, scopeOf } from './issuer-url.ts';
import type { IssuerKey } from './key-set.ts';

/** Members that an operator enters. */
export interface SourceCoordinates {
  readonly issuer: string;
  readonly jwksUri: string;
  readonly audience: string;
  /** Default: checked. */
  readonly discovery?: 'checked' | 'skipped';
}

export type SourceValidation =
  | {
      readonly kind: 'valid';
      readonly fingerprint: string;
      /** The issuer's host and path, such as `oidc.example/id/4F2A`. */
      readonly detectedScope: string;
      readonly keys: readonly IssuerKey[];
      /** The key set as fetched: the first record of the revision's keys. */
      readonly jwks: string;
      readonly fetchedAtMs: number;
    }
  | ({ readonly kind: 'invalid' } & Failure<SourceFailureCode>);

/** Never rejects. Fetches the key set only after the discovery document matched, unless the operator skips that. */
export async function validateSource(
  source: SourceCoordinates,
  fetcher: JsonFetcher,
  nowMs: () => number,
): Promise<SourceValidation> {
  const issuer = readIssuerUrl(source.issuer);
  if (issuer.kind === 'refused') return invalidUrl('issuer', issuer);
  const jwksUri = readKeySetUrl(source.jwksUri);
  if (jwksUri.kind === 'refused') return invalidUrl('JWKS URI', jwksUri);
  if (!isIdentifier(source.audience)) {
    return invalid('audience_malformed', 'audience: must be 1 to 512 visible ASCII characters');
  }
  const fault = source.discovery === 'skipped' ? undefined : await discoveryFault(source, fetcher);
  if (fault !== undefined) return { kind: 'invalid', ...fault };
  const keySet = await fetchKeySet(source.jwksUri, fetcher, nowMs);
  if (keySet.kind === 'failed') return invalid(keySet.code, `key set: ${keySet.detail}`);
  const { keys, jwks, fetchedAtMs } = keySet;
  if (keys.length === 0) {
    const detail =
      'key set: no named RSA key of 2048 to 8192 bits, P-256 key or Ed25519 key for verifying signatures';
    return invalid('key_set_no_usable_key', detail);
  }
  const fingerprint = sourceFingerprint(source, keys);
  return { kind: 'valid', fingerprint, detectedScope: scopeOf(issuer.url), keys, jwks, fetchedAtMs };
}

/**
 * Fingerprint of a validated revision in reports and bundles: SHA-256, base64url (43 characters), over these lines in
 * UTF-8, each ended by one LF. The last line repeats for each distinct usable key, sorted by bytes:
 *
 *     proofgate-source-v1
 *     issuer=<issuer>
 *     jwks-uri=<JWKS URI>
 *     audience=<audience>
 *     key=<RFC 7638 thumbprint, SHA-256, base64url>
 *
 * No value can contain a line feed. The fingerprint records what was validated: after the issuer rotates its keys,
 * another validation yields another fingerprint.
 */
function sourceFingerprint(source: SourceCoordinates, keys: readonly IssuerKey[]): string {
  // ASCII only, so sorting by code units sorts by bytes.
  const thumbprints = [...new Set(keys.map((key) => key.thumbprint))].sort();
  const lines = [
    'proofgate-source-v1',
    `issuer=${source.issuer}`,
    `jwks-uri=${source.jwksUri}`,
    `audience=${source.audience}`,
    ...thumbprints.map((thumbprint) => `key=${thumbprint}`),
  ];
  return hash('sha256', lines.map((line) => `${line}\n`).join(''), 'base64url');
}

async function discoveryFault(
  source: SourceCoordinates,
  fetcher: JsonFetcher,
): Promise<Failure<SourceFailureCode> | undefined> {
  const fetched = await fetcher.fetchJson(discoveryUrlOf(source.issuer));
  const fault = (code: SourceFailureCode, text: string) => ({ code, detail: `discovery document: ${text}` });
  if (fetched.kind === 'failed') return fault(fetched.code, fetched.detail);
  const document = fetched.value;
  if (!isJsonObject(document)) return fault('discovery_malformed', 'is no JSON object');
  if (document.issuer !== source.issuer) {
    return fault('discovery_issuer_mismatch', 'its issuer is not, character by character, the one entered');
  }
  if (document.jwks_uri !== source.jwksUri) {
    return fault(
      'discovery_jwks_uri_mismatch',
      'its jwks_uri is not, character by character, the one entered',
    );
  }
  return undefined;
}

function invalidUrl(what: string, reading: UrlReading & { readonly kind: 'refused' }): SourceValidation {
  return invalid(reading.code, `${what}: ${reading.detail}`);
}

function invalid(code: SourceFailureCode, detail: string): SourceValidation {
  return { kind: 'invalid', code, detail };
}
