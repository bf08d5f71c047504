/**
 * Records outside of Control what Control has acknowledged. All of it must exist exactly once, whatever happens to Control
 * later. Two answers that cannot both be true are recorded as contradictions.
 */
import type { Enrollment } from '../../../../src/caller/enroll/control-answers.ts';

/** An enrollment as Control reported it. */
export interface AcknowledgedEnrollment {
  readonly enrollmentId: string;
  readonly challengeId: string;
  /** Thumbprint of the key that enrolled. */
  readonly thumbprint: string;
  /** Undefined until Control has reported that the enrollment is issued. */
  readonly keyId: string | undefined;
}

export class Acknowledged {
  readonly enrollments = new Map<string, AcknowledgedEnrollment>();
  readonly revokedKeyIds = new Set<string>();
  readonly clientIds = new Set<string>();
  /** `client resource` */
  readonly grants = new Set<string>();
  readonly contradictions: string[] = [];
  /** Number of answers with new information. */
  mutations = 0;
  readonly #enrollmentOfChallenge = new Map<string, string>();

  /** An answer to a submission. */
  submission(challengeId: string, thumbprint: string, answer: Enrollment): void {
    const { enrollmentId, state } = answer;
    const known = this.#enrollmentOfChallenge.get(challengeId);
    if (known === undefined) {
      this.mutations += 1;
      this.#enrollmentOfChallenge.set(challengeId, enrollmentId);
      this.enrollments.set(enrollmentId, { enrollmentId, challengeId, thumbprint, keyId: undefined });
    } else if (known !== enrollmentId) {
      this.contradictions.push(`challenge ${challengeId} made ${known} and ${enrollmentId}`);
    }
    if (state === 'issued') this.issued(enrollmentId, answer.key.keyId);
    else if (state !== 'pending_approval') this.contradictions.push(`enrollment ${enrollmentId} is ${state}`);
  }

  /** Records that an operator approved the enrollment. */
  approval(enrollmentId: string, keyId: string): void {
    this.mutations += 1;
    this.issued(enrollmentId, keyId);
  }

  issued(enrollmentId: string, keyId: string): void {
    const known = this.enrollments.get(enrollmentId);
    if (known === undefined) throw new Error(`no submission of ${enrollmentId}`);
    if (known.keyId !== undefined && known.keyId !== keyId) {
      this.contradictions.push(`enrollment ${enrollmentId} issued ${known.keyId} and ${keyId}`);
    }
    this.enrollments.set(enrollmentId, { ...known, keyId });
  }

  revocation(keyId: string): void {
    this.revokedKeyIds.add(keyId);
    this.mutations += 1;
  }

  client(clientId: string): void {
    this.clientIds.add(clientId);
    this.mutations += 1;
  }

  grant(clientId: string, resource: string): void {
    this.grants.add(`${clientId} ${resource}`);
    this.mutations += 1;
  }
}
