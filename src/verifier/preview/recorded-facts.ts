/**
 * Reads a decision's audit event as facts to judge again. A line is untrusted: members have the types and lengths of
 * docs/reference/schema/decision-event.schema.json, or the event is not judged.
 */
import { DECISION_EVENT_NAME } from '../../process/telemetry/decision-event.ts';
import { isIdentifier, isKeyBinding, isKeyId, type KeyBinding } from '../../protocol/identifiers.ts';
import { PROOF_FORMATS, type ProofFormat } from '../../protocol/proof-format.ts';
import { isKnownDetail, REASONS, type Reason } from '../../protocol/reasons.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { CheckName, UnmetAttributes } from '../decision/steps.ts';

export interface RecordedFacts {
  readonly timeSeconds: number;
  readonly authSite: string;
  readonly revision: number;
  readonly head: string;
  readonly routeId: string | undefined;
  readonly method: string | undefined;
  readonly caller: RecordedCaller | undefined;
  /** Whether the proof is an HTTP message signature. */
  readonly isSignature: boolean;
  /** Whether a derived key signed the request itself, without a passport. */
  readonly isKeyed: boolean;
  /** Undefined: allowed. */
  readonly denial: RecordedDenial | undefined;
}

export interface RecordedCaller {
  readonly issuer: string;
  readonly subject: string;
  readonly trustDomain: string;
  readonly keyId: string;
  readonly keyBinding: KeyBinding;
  readonly isVerified: boolean;
}

export interface RecordedDenial {
  readonly reason: Reason;
  readonly detail: string | undefined;
  /** The check that denied; undefined where it was none of the site's. */
  readonly check: CheckName | 'replay' | undefined;
  /** Undefined in events of verifiers that do not write it. */
  readonly unmet: UnmetAttributes | undefined;
}

/** Why a line has no facts. */
export type UnreadableLine =
  | 'not_json'
  | 'not_a_decision'
  | 'event_malformed'
  | 'reason_unknown'
  | 'no_bundle';

export function readFacts(line: string): RecordedFacts | UnreadableLine {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return 'not_json';
  }
  if (!isJsonObject(value) || value.event !== DECISION_EVENT_NAME) return 'not_a_decision';
  return factsOf(value);
}

function factsOf(event: JsonObject): RecordedFacts | UnreadableLine {
  const { auth_site: authSite, bundle_head: head, bundle_revision: revision, time } = event;
  const denial = denialOf(event);
  if (typeof denial === 'string') return denial;
  if (authSite === undefined && denial !== undefined) return 'no_bundle';
  const timeMs = typeof time === 'string' && TIME.test(time) ? Date.parse(time) : Number.NaN;
  const routeId = optional(event.route_id, isIdentifier);
  const method = optional(event.method, isMethod);
  const caller = callerOf(event);
  const proofFormat = optional(event.proof_format, isProofFormat);
  const isSignature = proofFormat === 'http-message-signatures';
  const isSound =
    isIdentifier(authSite) && isIdentifier(head) && Number.isSafeInteger(revision) && Number.isFinite(timeMs);
  if (!isSound || routeId === null || method === null || caller === null || proofFormat === null)
    return 'event_malformed';
  if (denial === undefined && (routeId === undefined || caller === undefined)) return 'event_malformed';
  return {
    timeSeconds: Math.floor(timeMs / 1000),
    authSite,
    revision: Number(revision),
    head,
    routeId,
    method,
    caller,
    isSignature,
    isKeyed: isSignature && event.passport_id === undefined,
    denial,
  };
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const isProofFormat = (value: unknown): value is ProofFormat =>
  PROOF_FORMATS.some((known) => known === value);
const METHOD = /^[!-~]{1,32}$/;
const isMethod = (value: unknown): value is string => typeof value === 'string' && METHOD.test(value);

/** Undefined when absent, null when malformed. */
function optional<T>(value: unknown, isSound: (value: unknown) => value is T): T | undefined | null {
  return value === undefined ? undefined : isSound(value) ? value : null;
}

function callerOf(event: JsonObject): RecordedCaller | undefined | null {
  const { caller_verified: isVerified, issuer, key_binding: keyBinding, key_id: keyId } = event;
  const { subject, trust_domain: trustDomain } = event;
  if (keyId === undefined && issuer === undefined && subject === undefined) return undefined;
  const isSound = isIdentifier(issuer) && isIdentifier(subject) && isIdentifier(trustDomain);
  if (!isSound || !isKeyId(keyId) || !isKeyBinding(keyBinding)) return null;
  return { issuer, subject, trustDomain, keyId, keyBinding, isVerified: isVerified === true };
}

function denialOf(event: JsonObject): RecordedDenial | undefined | UnreadableLine {
  const { detail, outcome } = event;
  if (outcome === 'allowed') return undefined;
  // An observed request was denied, and passed without identity.
  if (outcome !== 'denied' && outcome !== 'observed') return 'event_malformed';
  const reason = REASONS.find((known) => known === event.reason);
  if (reason === undefined) return 'reason_unknown';
  if (detail !== undefined && !isIdentifier(detail)) return 'event_malformed';
  const check = checkOf(reason, detail);
  const unmet = event.unmet_attributes === undefined ? undefined : unmetOf(event.unmet_attributes);
  if (unmet === null) return 'event_malformed';
  return check === 'unknown' ? 'reason_unknown' : { reason, detail, check, unmet };
}

const CHECK_OF_REASON: { readonly [R in Reason]: CheckName | 'replay' | undefined } = {
  bundle_policy_missing: 'bundle',
  bundle_route_missing: 'route',
  source_issuer_mismatch: 'source',
  source_trust_domain_mismatch: 'source',
  source_subject_mismatch: 'source',
  insufficient_key_binding: 'source',
  bundle_freshness_unknown: 'freshness',
  stale_bundle_fail_closed: 'freshness',
  missing_provenance: 'attributes',
  provenance_mismatch: 'attributes',
  missing_context: 'attributes',
  context_mismatch: 'attributes',
  invalid_request_proof: undefined,
  request_binding_mismatch: 'binding',
  jti_replay: 'replay',
  replay_store_unavailable: undefined,
  verifier_unavailable: undefined,
};

const CHECK_OF_PROOF_DETAIL: { readonly [detail: string]: CheckName } = {
  authorization_missing: 'credentials',
  authorization_scheme: 'credentials',
  passport_repeated: 'credentials',
  passport_malformed: 'credentials',
  proof_missing: 'credentials',
  proof_malformed: 'credentials',
  proof_ambiguous: 'credentials',
  key_unknown: 'key',
  key_revoked: 'key',
  key_not_yet_valid: 'key',
  key_expired: 'key',
  passport_signature: 'passport_signature',
  claims_not_allowed: 'claims',
  subject_blocked: 'blocked',
  holder_blocked: 'blocked',
  token_not_accepted: 'claims',
  passport_ttl: 'passport_times',
  passport_not_yet_valid: 'passport_times',
  passport_expired: 'passport_times',
  audience: 'audience',
  proof_key: 'proof_signature',
  proof_signature: 'proof_signature',
  dpop_nonce: 'proof_signature',
  proof_ttl: 'proof_times',
  proof_not_yet_valid: 'proof_times',
  proof_expired: 'proof_times',
};

/** `unknown`: of a version that has other details. */
function checkOf(reason: Reason, detail: string | undefined): CheckName | 'replay' | undefined | 'unknown' {
  if (reason !== 'invalid_request_proof') return CHECK_OF_REASON[reason];
  const isKnown =
    detail !== undefined && isKnownDetail(detail) && Object.hasOwn(CHECK_OF_PROOF_DETAIL, detail);
  return isKnown ? CHECK_OF_PROOF_DETAIL[detail] : 'unknown';
}

const ATTRIBUTE_REASONS = [
  'missing_provenance',
  'provenance_mismatch',
  'missing_context',
  'context_mismatch',
] as const;
const MAX_NAMES = 32;

function unmetOf(value: unknown): UnmetAttributes | null {
  if (!isJsonObject(value)) return null;
  const unmet: { [R in (typeof ATTRIBUTE_REASONS)[number]]?: readonly string[] } = {};
  for (const reason of ATTRIBUTE_REASONS) {
    const names = value[reason];
    if (names === undefined) continue;
    if (!Array.isArray(names) || names.length > MAX_NAMES || !names.every(isIdentifier)) return null;
    unmet[reason] = names;
  }
  return unmet;
}
