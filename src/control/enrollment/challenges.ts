/**
 * Issues challenges, each bound to a policy and a public key and valid for two minutes. Control does not store the
 * challenge; it derives it from its row and the current master key. A challenge is used once: `acceptance.ts` consumes it.
 * Source: docs/design/enrollment.md "Enrollment".
 */

import { LRUCache } from 'lru-cache';
import { importPublicKey } from '../../protocol/import-public-key.ts';
import { type PublicKey, parsePublicJwk } from '../../protocol/public-key.ts';
import {
  type ChallengeAnswer,
  type ChallengeRequest,
  ENROLLMENT_PROVIDERS,
} from '../contract/enrollment-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { CHALLENGE_LIFETIME_SECONDS, submissionProblem } from '../domain/enrollment-rules.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { KeySetCache } from '../issuers/key-set-cache.ts';
import { submissionFacts } from '../keys/policy-facts.ts';
import { momentOf } from '../resource/change.ts';
import type { MasterKey } from '../secrets/master-key.ts';
import type { MasterKeys } from '../secrets/master-keys.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { EnrollmentAttempt } from './rejected-enrollments.ts';

/** Dependencies of requests by workloads. */
export interface WorkloadContext {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly masterKeys: MasterKeys;
  readonly keys: EnrollingKeys;
  readonly keySets: Pick<KeySetCache, 'keysFor'>;
  /** The --public-url values, without trailing slashes. */
  readonly publicUrls: readonly string[];
}

/**
 * @throws ApiProblem `unsupported_enrollment_provider`, `policy_unknown`, `public_key_invalid`, and every error that a
 *   submission would get now
 */
export async function issueChallenge(
  { store, nowMs, masterKeys, keys }: WorkloadContext,
  { policy: reference, provider, public_key: jwk }: ChallengeRequest,
  attempt: EnrollmentAttempt,
): Promise<ChallengeAnswer> {
  if (!ENROLLMENT_PROVIDERS.some((supported) => supported === provider)) {
    throw new ApiProblem('unsupported_enrollment_provider');
  }
  // First, because validating the public key's point costs a millisecond.
  attempt.policy = await store.read((tx) => requireReference(tx, reference));
  const key = keys.import(jwk);
  if (key === undefined) throw new ApiProblem('public_key_invalid');
  return store.writeUnaudited(undefined, async (tx) => {
    const policy = await requireReference(tx, reference);
    const problem = submissionProblem(await submissionFacts(tx, policy, key.thumbprint, undefined));
    if (problem !== undefined) throw new ApiProblem(problem);
    const challenge = newChallenge(policy, key, nowMs());
    await tx.enrollments.addChallenge(challenge);
    return {
      challenge_id: challenge.id,
      challenge: challengeText(await masterKeys.current(tx), challenge),
      auth_site: challenge.siteId,
      expires_at: momentOf(challenge.expiresAtMs),
    };
  });
}

/** The challenge of a row. It is a secret until used. */
export function challengeText(
  masterKey: MasterKey,
  { id, policyId, thumbprint }: Pick<RowOf<'challenge'>, 'id' | 'policyId' | 'thumbprint'>,
): string {
  return masterKey.challenge(id, policyId, thumbprint);
}

function newChallenge(
  policy: RowOf<'enrollmentPolicy'>,
  { jwk, thumbprint }: PublicKey,
  nowMs: number,
): RowOf<'challenge'> {
  return {
    id: newId('challenge', nowMs),
    siteId: policy.siteId,
    policyId: policy.id,
    publicJwk: JSON.stringify(jwk),
    thumbprint,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + CHALLENGE_LIFETIME_SECONDS * 1000,
    enrollmentId: null,
  };
}

/** @throws ApiProblem `policy_unknown` */
async function requireReference(tx: Transaction, reference: string): Promise<RowOf<'enrollmentPolicy'>> {
  const policy = await tx.policies.byReference(reference);
  if (policy === undefined) throw new ApiProblem('policy_unknown');
  return policy;
}

/**
 * Imports public keys of workloads and caches the valid ones. The same key arrives with a challenge, a submission and
 * every poll, and validating its point is the most expensive part of such a request.
 */
const MAX_REMEMBERED_KEYS = 10_000;

export class EnrollingKeys {
  /** By the coordinate `x`, which defines an Ed25519 key. */
  readonly #sound = new LRUCache<string, PublicKey>({ max: MAX_REMEMBERED_KEYS });

  /** Undefined unless the value is a usable Ed25519 key. */
  import(value: unknown): PublicKey | undefined {
    const jwk = parsePublicJwk(value);
    if (jwk?.kty !== 'OKP') return undefined;
    const key = this.#sound.get(jwk.x) ?? importPublicKey(jwk);
    if (key !== undefined) this.#sound.set(jwk.x, key);
    return key;
  }

  /** Imports a key from a row; it was validated before it was stored. */
  stored(publicJwk: string): PublicKey {
    const key = this.import(JSON.parse(publicJwk));
    if (key === undefined) throw new Error('a stored public key cannot be used');
    return key;
  }
}
