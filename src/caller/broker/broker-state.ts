/**
 * The state file `<key file>.broker.json`, which an agent with a broker writes beside the key. It lets `sign`
 * and `request` work without the broker.
 * Source: docs/operate/workloads.md "With a broker".
 */
import { isIdentifier } from '../../protocol/identifiers.ts';
import { ObjectReader, textThat } from '../../protocol/object-reader.ts';
import { parsePassport } from '../../protocol/passport.ts';
import { thumbprintOf } from '../../protocol/public-key.ts';
import { formatMoment, isMoment } from '../../protocol/rfc3339.ts';
import { readSigningProfiles, type SigningProfiles } from '../../protocol/signing-profile.ts';
import { parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import type { IssuedPassport } from './broker-answers.ts';
import { BrokerError } from './broker-error.ts';

const BROKER_STATE_FORMAT = 'proofgate.broker-state/v1';

export interface BrokerState {
  /** RFC 7638 thumbprint of the holder key. */
  readonly keyThumbprint: string;
  readonly brokerUrl: string;
  /** Undefined for a software key. */
  readonly svid: { readonly spiffeId: string; readonly expiresAtMs: number } | undefined;
  readonly passports: readonly Pick<IssuedPassport, 'audience' | 'expiresAtMs' | 'jws' | 'subject'>[];
  /** Signing profile files as JSON values. */
  readonly profileDocuments: readonly unknown[];
}

export function formatBrokerState(state: BrokerState): string {
  const { brokerUrl, keyThumbprint, passports, profileDocuments, svid } = state;
  return `${JSON.stringify({
    format: BROKER_STATE_FORMAT,
    key_thumbprint: keyThumbprint,
    broker_url: brokerUrl,
    svid: svid && { spiffe_id: svid.spiffeId, expires_at: formatMoment(svid.expiresAtMs) },
    passports: passports.map(({ audience, jws }) => ({ audience, passport: jws })),
    signing_profiles: profileDocuments,
  })}\n`;
}

/** @throws BrokerError `broker_state_invalid` */
export function parseBrokerState(text: string, path: string): BrokerState {
  const root = new ObjectReader(parseJson(text, path), '', (place, problem) => invalid(path, place, problem));
  root.required('format', (value) => value === BROKER_STATE_FORMAT, BROKER_STATE_FORMAT);
  const keyThumbprint = root.required('key_thumbprint', isIdentifier, 'a thumbprint');
  const svid = root.optionalObject('svid');
  return {
    keyThumbprint,
    brokerUrl: root.required('broker_url', isIdentifier, 'a URL'),
    svid: svid && {
      spiffeId: svid.required('spiffe_id', isIdentifier, 'a SPIFFE ID'),
      expiresAtMs: Date.parse(svid.required('expires_at', isMoment, 'a moment')),
    },
    passports: root.items('passports').map((item) => readPassport(item, keyThumbprint)),
    profileDocuments: root.required('signing_profiles', isList, 'a list'),
  };
}

/** @throws ClientError `profile_invalid` */
export function signingProfilesOf(documents: readonly unknown[], from: string): readonly SigningProfiles[] {
  return documents.map((document) => readSigningProfiles(document, from));
}

function readPassport(item: ObjectReader, keyThumbprint: string): BrokerState['passports'][number] {
  const audience = item.required('audience', isIdentifier, 'an audience');
  const jws = item.required('passport', isText, 'a passport');
  const claims = parsePassport(jws)?.claims;
  if (claims?.audience !== audience || thumbprintOf(claims.holderJwk) !== keyThumbprint) {
    return item.fail('passport', 'is not one for this audience and key');
  }
  return { audience, jws, subject: claims.subject, expiresAtMs: claims.expiresAtSeconds * 1000 };
}

const isText = textThat(() => true);

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function parseJson(text: string, path: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof StrictJsonError) throw invalid(path, '', error.message);
    throw error;
  }
}

function invalid(path: string, place: string, problem: string): BrokerError {
  const text = `${path}: ${place === '' ? '' : `${place} `}${problem}: it is the agent's file; start the agent again`;
  return new BrokerError('usage', 'broker_state_invalid', text);
}
