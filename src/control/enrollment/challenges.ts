/**
 * Issues challenges, each bound to a policy and a public key and valid for two minutes. Control does not store the
 * challenge; it derives it from its row and the master key.
 * Source: docs/control.md "Enrollment".
 */

import type { ChallengeAnswer, ChallengeRequest } from '../../api-contract/enrollment-contract.ts';
import { ENROLLMENT_PROVIDERS } from '../../api-contract/enrollment-contract.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { CHALLENGE_LIFETIME_SECONDS, submissionProblem } from '../domain/enrollment-states.ts';
import { newId } from '../domain/resource-identifiers.ts';
import { momentOf } from '../resource/change.ts';
import type { MasterKey } from '../secrets/master-key.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { EnrollingKeys } from './enrolling-keys.ts';
import { submissionFacts } from './policy-facts.ts';
import type { EnrollmentAttempt } from './rejected-enrollments.ts';

export interface ChallengesOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly masterKey: MasterKey;
  readonly keys: EnrollingKeys;
}

export class Challenges {
  readonly #options: ChallengesOptions;

  constructor(options: ChallengesOptions) {
    this.#options = options;
  }

  /**
   * @throws ApiProblem `unsupported_enrollment_provider`, `policy_unknown`, `public_key_invalid`, and every error that a
   *   submission would get now
   */
  async issue(
    { policy: reference, provider, public_key: jwk }: ChallengeRequest,
    attempt: EnrollmentAttempt,
  ): Promise<ChallengeAnswer> {
    const { store, nowMs, keys } = this.#options;
    if (!ENROLLMENT_PROVIDERS.some((supported) => supported === provider)) {
      throw new ApiProblem('unsupported_enrollment_provider');
    }
    // First, because validating the public key's point costs a millisecond.
    attempt.policy = await store.read((tx) => requireReference(tx, reference));
    const key = keys.import(jwk);
    if (key === undefined) throw new ApiProblem('public_key_invalid');
    const row = await store.housekeep(undefined, async (tx) => {
      const policy = await requireReference(tx, reference);
      const problem = submissionProblem(await submissionFacts(tx, policy, key.thumbprint, undefined));
      if (problem !== undefined) throw new ApiProblem(problem);
      const challenge = newChallenge(policy, key, nowMs());
      await tx.enrollments.addChallenge(challenge);
      return challenge;
    });
    return {
      challenge_id: row.id,
      challenge: this.textOf(row),
      auth_site: row.siteId,
      expires_at: momentOf(row.expiresAtMs),
    };
  }

  /** The challenge of a row. It is a secret until used. */
  textOf({ id, policyId, thumbprint }: Pick<RowOf<'challenge'>, 'id' | 'policyId' | 'thumbprint'>): string {
    return this.#options.masterKey.challenge(id, policyId, thumbprint);
  }
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
