/**
 * The workload's side of enrollment: request a challenge, submit, and poll the result.
 * Source: specification "Authentication", enrollment plane; docs/design/enrollment.md "Enrollment".
 */

import { decodeBase64url } from '../../protocol/base64url.ts';
import { POLL_SCHEME, POLL_WINDOW_SECONDS, pollText } from '../../protocol/enrollment.ts';
import { parsePositiveInteger } from '../../protocol/identifiers.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { READINESS_CONDITIONS } from '../../protocol/readiness-conditions.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';
import type {
  ChallengeAnswer,
  ChallengeRequest,
  EnrolledProfile,
  EnrollmentSubmission,
  WorkloadEnrollment,
  WorkloadReadiness,
} from '../contract/enrollment-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { keyStateAt } from '../domain/enrollment-rules.ts';
import { momentOf } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { EnrollingKeys, issueChallenge, type WorkloadContext } from './challenges.ts';
import { requireEnrollment } from './decisions.ts';
import { RejectedEnrollments, type RejectedEnrollmentsOptions } from './rejected-enrollments.ts';
import { type PolicyTurn, submit } from './submissions.ts';

/** Returns the signing profiles of a client; publishing derives them from grants and routes. */
export type ProfilesOfClient = (
  tx: Transaction,
  siteId: string,
  clientId: string,
) => Promise<readonly EnrolledProfile[]>;

/** Returns the five readiness conditions of a derived key over all attached targets. */
export type ReadinessOfKey = (keyId: string) => Promise<WorkloadReadiness>;

type WorkloadEnrollmentsOptions = Omit<WorkloadContext, 'keys'> &
  RejectedEnrollmentsOptions & {
    readonly profilesOfClient: ProfilesOfClient;
    readonly readinessOfKey: ReadinessOfKey;
  };

/** Operations that workloads authorize with their own proofs instead of an operator's permission. */
export class WorkloadEnrollments {
  readonly #options: WorkloadEnrollmentsOptions & WorkloadContext;
  readonly #rejected: RejectedEnrollments;

  constructor(options: WorkloadEnrollmentsOptions) {
    this.#options = { ...options, keys: new EnrollingKeys() };
    this.#rejected = new RejectedEnrollments(options);
  }

  challenge(request: ChallengeRequest, requestId?: string): Promise<ChallengeAnswer> {
    const attempt = { requestId };
    return this.#rejected.watch(attempt, () => issueChallenge(this.#options, request, attempt));
  }

  /** @param takeTurn applies the policy's rate limit before any expensive work, and may reject */
  async submit(
    submission: EnrollmentSubmission,
    takeTurn: PolicyTurn = async () => {},
    requestId?: string,
  ): Promise<{ readonly created: boolean; readonly enrollment: WorkloadEnrollment }> {
    const attempt = { requestId };
    const { created, enrollmentId } = await this.#rejected.watch(attempt, () =>
      submit(this.#options, submission, attempt, takeTurn),
    );
    const enrollment = await this.#options.store.read(async (tx) =>
      this.#view(tx, await requireEnrollment(tx, enrollmentId)),
    );
    return { created, enrollment };
  }

  poll(enrollmentId: string, authorization: string | undefined): Promise<WorkloadEnrollment> {
    return this.#options.store.read(async (tx) =>
      this.#view(tx, await this.#authorized(tx, enrollmentId, authorization)),
    );
  }

  async readiness(enrollmentId: string, authorization: string | undefined): Promise<WorkloadReadiness> {
    const row = await this.#options.store.read((tx) => this.#authorized(tx, enrollmentId, authorization));
    return row.keyId === null ? notReady(row) : this.#options.readinessOfKey(row.keyId);
  }

  /** @throws ApiProblem `poll_unauthorized`, `enrollment_unknown` */
  async #authorized(
    tx: Transaction,
    enrollmentId: string,
    authorization: string | undefined,
  ): Promise<RowOf<'enrollment'>> {
    const proof = readPollProof(authorization);
    if (proof === undefined) throw new ApiProblem('poll_unauthorized');
    const row = await requireEnrollment(tx, enrollmentId);
    const { keys, nowMs } = this.#options;
    if (!isPollProofValid(proof, row.id, keys.stored(row.publicJwk), nowMs())) {
      throw new ApiProblem('poll_unauthorized');
    }
    return row;
  }

  async #view(tx: Transaction, row: RowOf<'enrollment'>): Promise<WorkloadEnrollment> {
    const view = {
      enrollment_id: row.id,
      auth_site: row.siteId,
      state: row.state,
      created_at: momentOf(row.createdAtMs),
      ...(row.denialCode === null ? {} : { denial_code: row.denialCode }),
    };
    const key = row.keyId === null ? undefined : await tx.keys.find(row.keyId);
    return key === undefined ? view : { ...view, ...(await this.#keyMembers(tx, key)) };
  }

  async #keyMembers(
    tx: Transaction,
    key: RowOf<'derivedKey'>,
  ): Promise<Pick<WorkloadEnrollment, 'derived_key' | 'signing_profiles'>> {
    const { siteId, clientId } = key;
    const site = await tx.sites.find(siteId);
    const client = await tx.clients.find(siteId, clientId);
    // All keys of a deleted client have ended, so the workload loses nothing.
    if (site === undefined || client === undefined) throw new ApiProblem('enrollment_unknown');
    return {
      derived_key: {
        key_id: key.keyId,
        fingerprint: key.thumbprint,
        status: keyStateAt(key.status, key.expiresAtSeconds, Math.floor(this.#options.nowMs() / 1000)),
        expires_at: momentOf(key.expiresAtSeconds * 1000),
        client_id: clientId,
        issuer: site.issuerUrl,
        trust_domain: site.trustDomain,
        subject: client.subject,
        key_binding: 'software',
      },
      signing_profiles: [...(await this.#options.profilesOfClient(tx, siteId, clientId))],
    };
  }
}

/** No key yet, or never: the first condition says why. */
function notReady({ state }: RowOf<'enrollment'>): WorkloadReadiness {
  const conditions = READINESS_CONDITIONS.map((condition) => ({
    condition,
    state: condition === 'derived_key' ? state : 'no_key',
    satisfied: false,
    blocked_by: condition === 'derived_key' ? `the enrollment is ${state}` : 'there is no derived key',
  }));
  return { ready: false, conditions };
}

/**
 * The `Authorization` header of a workload's poll: a timestamp and a signature over it by the enrolling key.
 * Source: docs/design/enrollment.md "Enrollment".
 */

/** The scheme is case-insensitive (RFC 9110 section 11.1); the rest has one spelling. */
const AUTHORIZATION = /^([A-Za-z0-9-]{1,64}) ([0-9]{1,16})\.([A-Za-z0-9_-]{1,128})$/;

interface PollProof {
  readonly timeSeconds: number;
  readonly signature: Uint8Array;
}

/** Undefined for a header of another scheme or form. @param authorization the header's value */
function readPollProof(authorization: string | undefined): PollProof | undefined {
  const [, scheme = '', time = '', text = ''] = AUTHORIZATION.exec(authorization ?? '') ?? [];
  if (scheme.toLowerCase() !== POLL_SCHEME.toLowerCase()) return undefined;
  const timeSeconds = parsePositiveInteger(time);
  const signature = decodeBase64url(text);
  return timeSeconds === undefined || signature === undefined ? undefined : { timeSeconds, signature };
}

/** Whether the signature is by the enrollment's key and the timestamp is current. */
function isPollProofValid(
  { timeSeconds, signature }: PollProof,
  enrollmentId: string,
  key: PublicKey,
  nowMs: number,
): boolean {
  if (Math.abs(Math.floor(nowMs / 1000) - timeSeconds) > POLL_WINDOW_SECONDS) return false;
  return verifySignature(key, pollText(enrollmentId, timeSeconds), signature);
}
