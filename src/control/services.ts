/**
 * What the parts of Control are to each other: ports that the API speaks to, and that the composition root fills.
 * Views are the API's JSON shapes; they are defined in `api/contract/`.
 */
import type { Acknowledgement, PollAnswer, PollQuery } from '../bundle/format/distribution-contract.ts';
import type {
  ChallengeAnswer,
  ChallengeRequest,
  EnrollmentSubmission,
  WorkloadEnrollment,
  WorkloadReadiness,
} from './api/contract/enrollment.ts';
import type { HeldRole } from './domain/roles.ts';
import type { Transaction } from './store/port.ts';

/** Somebody whom a request's credentials name. */
export interface Principal {
  /** As audit rows name them: `oidc:<issuer>|<subject>`, `token:<id>`, `bootstrap`. */
  readonly actor: string;
  readonly displayName: string;
  readonly via: 'bootstrap' | 'access_token' | 'session';
  readonly roles: readonly HeldRole[];
  /** When these credentials end; undefined when they do not. */
  readonly expiresAtMs?: number | undefined;
}

/** A request's credentials, as they came. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly sessionCookie: string | undefined;
}

export interface Operators {
  /** @throws Refusal `authentication_required` */
  authenticate(credentials: Credentials): Promise<Principal>;
}

/** What a workload does: no operator's permission, its own proofs instead. */
export interface WorkloadEnrollments {
  /** @throws Refusal */
  challenge(request: ChallengeRequest, requestId?: string): Promise<ChallengeAnswer>;
  /** `created` is false for the same submission again. @throws Refusal */
  submit(
    submission: EnrollmentSubmission,
  ): Promise<{ readonly created: boolean; readonly enrollment: WorkloadEnrollment }>;
  /** @param authorization the header's value @throws Refusal */
  poll(enrollmentId: string, authorization: string | undefined): Promise<WorkloadEnrollment>;
  /** @throws Refusal */
  readiness(enrollmentId: string, authorization: string | undefined): Promise<WorkloadReadiness>;
}

/** A target's side of distribution. */
export interface TargetDistribution {
  /** @param authorization the header's value @returns the target's ID @throws Refusal `authentication_required` */
  authenticate(authorization: string | undefined): Promise<string>;
  /**
   * Waits until there is something that the target lacks, or its time is up.
   * @param etag as the target sent it in If-None-Match
   * @param signal ends the wait: the target went away, or Control stops
   */
  poll(
    targetId: string,
    query: PollQuery,
    etag: string | undefined,
    signal: AbortSignal,
  ): Promise<
    | { readonly kind: 'answer'; readonly answer: PollAnswer; readonly etag: string }
    | { readonly kind: 'not_modified'; readonly etag: string | undefined }
  >;
  acknowledge(targetId: string, acknowledgement: Acknowledgement): Promise<void>;
  /** A file of a whole bundle. @throws Refusal `not_found` */
  file(targetId: string, revision: number, name: string): Promise<Buffer>;
}

/**
 * Whether a verifier would take what the site holds now, asked inside the transaction that changes it.
 * @throws Refusal `definition_invalid`, saying what and where
 */
export type SiteCheck = (tx: Transaction, siteId: string) => Promise<void>;
