/**
 * Checks the claims of a workload token after its signature is verified. Identities compare exactly, byte by byte.
 * Source: RFC 7519 section 4.1; OpenID Connect Core section 2; docs/operate/control.md "Sources and tokens".
 */

import { isIdentifier } from '../../protocol/identifiers.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { reject, type TokenProblem } from './token-envelope.ts';

/** Clock skew allowed for `nbf` and `iat`. `exp` gets none, because no key may outlive its token. */
export const CLOCK_SKEW_SECONDS = 30;
/** Maximum from `iat` to `exp`. Managed clusters end projected tokens after 24 h or 48 h. */
export const MAX_TOKEN_LIFETIME_SECONDS = 172_800;

/** Claims that the policy and its source revision require. */
export interface TokenExpectations {
  readonly issuer: string;
  /** The source's audience. */
  readonly audience: string;
  readonly subject: string;
}

export interface VerifiedClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
  readonly expiresAtSeconds: number;
  readonly issuedAtSeconds: number | undefined;
  /** Names to values, both 1 to 512 bytes of 0x21 to 0x7e; at most seven. */
  readonly provenance: KubernetesProvenance;
}

/** @param nowMs the clock, in milliseconds since the epoch */
export function checkClaims(
  claims: JsonObject,
  expected: TokenExpectations,
  nowMs: number,
): VerifiedClaims | TokenProblem {
  if (claims.iss !== expected.issuer) return reject('token_issuer', "its iss is not the source's issuer");
  if (!isOnly(claims.aud, expected.audience)) {
    return reject('token_audience', "its aud must be the source's audience and nothing else");
  }
  if (claims.sub !== expected.subject) return reject('token_subject', "its sub is not the policy's subject");
  const times = checkTimes(claims, Math.floor(nowMs / 1000));
  if ('kind' in times) return times;
  const provenance = readKubernetesClaims(claims, expected.subject);
  if (provenance === undefined) {
    return reject('token_claims', 'its kubernetes.io claims name another service account than its sub');
  }
  const { issuer, subject, audience } = expected;
  return { issuer, subject, audience, ...times, provenance };
}

/** A string, or a list of exactly one (Kubernetes always sends a list). */
function isOnly(audience: unknown, expected: string): boolean {
  if (!Array.isArray(audience)) return audience === expected;
  return audience.length === 1 && audience[0] === expected;
}

type Times = Pick<VerifiedClaims, 'expiresAtSeconds' | 'issuedAtSeconds'>;

function checkTimes({ exp, nbf, iat }: JsonObject, nowSeconds: number): Times | TokenProblem {
  if (exp === undefined) return reject('token_expiry_missing', 'it has no exp');
  if (!isSeconds(exp) || !(nbf === undefined || isSeconds(nbf)) || !(iat === undefined || isSeconds(iat))) {
    return reject('token_claims', 'exp, nbf and iat must be whole seconds');
  }
  if (nowSeconds >= exp) return reject('token_expired', 'it has expired');
  const latestStartSeconds = nowSeconds + CLOCK_SKEW_SECONDS;
  if ((nbf ?? 0) > latestStartSeconds || (iat ?? 0) > latestStartSeconds) {
    return reject('token_not_yet_valid', 'its nbf or iat lies ahead; are both clocks right?');
  }
  if (exp <= (iat ?? 0) || exp <= (nbf ?? 0)) return reject('token_claims', 'it ends before it begins');
  if (exp - (iat ?? nowSeconds) > MAX_TOKEN_LIFETIME_SECONDS) {
    return reject(
      'token_lifetime',
      `it lives longer than ${MAX_TOKEN_LIFETIME_SECONDS} s; lower expirationSeconds`,
    );
  }
  return { expiresAtSeconds: exp, issuedAtSeconds: iat };
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/**
 * Reads the private claim `kubernetes.io`, in which a cluster describes a pod, as the key's provenance.
 * Source: Kubernetes "Managing Service Accounts", schema for service account private claims;
 * docs/operate/control.md "Sources and tokens".
 */

type KubernetesProvenance = { readonly [name: string]: string };

interface Entry {
  readonly name: string;
  readonly path: readonly string[];
}

const ENTRIES: readonly Entry[] = [
  { name: 'kubernetes_namespace', path: ['namespace'] },
  { name: 'kubernetes_service_account', path: ['serviceaccount', 'name'] },
  { name: 'kubernetes_service_account_uid', path: ['serviceaccount', 'uid'] },
  { name: 'kubernetes_pod', path: ['pod', 'name'] },
  { name: 'kubernetes_pod_uid', path: ['pod', 'uid'] },
  { name: 'kubernetes_node', path: ['node', 'name'] },
  { name: 'kubernetes_node_uid', path: ['node', 'uid'] },
];

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/**
 * Skips entries whose values do not fit into a bundle. Undefined when the claims contradict the subject: if an issuer lets
 * people choose the claim, it must not put another namespace's name on a key.
 */
function readKubernetesClaims(claims: JsonObject, subject: string): KubernetesProvenance | undefined {
  const cluster = ownMember(claims, 'kubernetes.io');
  const found = new Map<string, string>();
  for (const { name, path } of ENTRIES) {
    const value = path.reduce(ownMember, cluster);
    if (isIdentifier(value)) found.set(name, value);
  }
  const [, namespace, serviceAccount] = SERVICE_ACCOUNT.exec(subject) ?? [];
  if (namespace !== undefined && !agrees(found.get('kubernetes_namespace'), namespace)) return undefined;
  if (serviceAccount !== undefined && !agrees(found.get('kubernetes_service_account'), serviceAccount)) {
    return undefined;
  }
  return Object.fromEntries(found);
}

function agrees(said: string | undefined, meant: string): boolean {
  return said === undefined || said === meant;
}

function ownMember(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
