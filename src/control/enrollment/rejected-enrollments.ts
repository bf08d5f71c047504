/**
 * Records rejected challenges and submissions: each one in the log, and the first of each kind per minute in the audit
 * trail.
 * Source: docs/design/enrollment.md "Enrollment", "Audit events".
 */
import { LRUCache } from 'lru-cache';
import { ApiProblem, type ProblemCode } from '../domain/api-problem.ts';
import type { VerifiedToken } from '../issuers/workload-token.ts';
import type { AuditEntry, ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';

/** Verified facts about an enrollment request, filled in as its checks pass. */
export interface EnrollmentAttempt {
  readonly requestId?: string | undefined;
  policy?: Pick<RowOf<'enrollmentPolicy'>, 'id' | 'siteId'>;
  token?: Pick<VerifiedToken, 'issuer' | 'subject'>;
}

export interface RejectedEnrollment {
  readonly code: ProblemCode;
  /** Both undefined where no policy was found. */
  readonly policyId: string | undefined;
  readonly siteId: string | undefined;
  /** Subject of a verified token. */
  readonly subject: string | undefined;
  readonly requestId: string | undefined;
}

export interface RejectedEnrollmentsOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  /** Receives each rejection, for the log. */
  readonly reportRefused: (refused: RejectedEnrollment) => void;
  /** Receives errors of audit writes; the client still gets its rejection. */
  readonly report: (error: unknown) => void;
}

/** Faults of Control are no rejections. `rate_limited` requests are bounded already. */
const NOT_RECORDED: ReadonlySet<ProblemCode> = new Set(['rate_limited', 'unavailable', 'internal']);
/** Anyone can cause rejections, so the audit trail takes one per minute, code and policy. */
const AUDIT_INTERVAL_MS = 60_000;
const MAX_KINDS = 10_000;

export class RejectedEnrollments {
  readonly #options: RejectedEnrollmentsOptions;
  /** By code and policy. */
  readonly #audited = new LRUCache<string, { readonly untilMs: number; suppressed: number }>({
    max: MAX_KINDS,
  });

  constructor(options: RejectedEnrollmentsOptions) {
    this.#options = options;
  }

  /** Runs an enrollment request. @throws what `work` throws, after recording it */
  async watch<T>(attempt: EnrollmentAttempt, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ApiProblem && !NOT_RECORDED.has(error.code))
        await this.#record(attempt, error.code);
      throw error;
    }
  }

  async #record({ policy, token, requestId }: EnrollmentAttempt, code: ProblemCode): Promise<void> {
    const { reportRefused, report, nowMs, store } = this.#options;
    const { id: policyId, siteId } = policy ?? {};
    reportRefused({ code, policyId, siteId, subject: token?.subject, requestId });
    const kind = `${code} ${policyId ?? ''}`;
    const last = this.#audited.get(kind);
    const now = nowMs();
    if (last !== undefined && now < last.untilMs) {
      last.suppressed++;
      return;
    }
    this.#audited.set(kind, { untilMs: now + AUDIT_INTERVAL_MS, suppressed: 0 });
    try {
      await store.mutate(
        siteId === undefined ? { kind: 'installation' } : { kind: 'site', siteId },
        async (tx) => {
          const place = siteId === undefined ? {} : ((await tx.hierarchy.placeOfSite(siteId)) ?? { siteId });
          const audit: AuditEntry = {
            kind: 'proofgate.control.enrollment.refuse',
            actor: token === undefined ? 'control' : `workload:${token.issuer}|${token.subject}`,
            resource: { kind: 'enrollment_policy', id: policyId ?? 'unknown' },
            place,
            after: {
              code,
              ...(token === undefined
                ? {}
                : { verified_issuer: token.issuer, verified_subject: token.subject }),
              suppressed: last?.suppressed ?? 0,
            },
            requestId,
          };
          return { result: undefined, audit: [audit] };
        },
      );
    } catch (error) {
      report(error);
    }
  }
}
