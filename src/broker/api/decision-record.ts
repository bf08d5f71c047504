/** Records the outcome of each request of a caller as one audit event and one count. */
import type { FastifyRequest } from 'fastify';
import type { HttpProblem } from '../../process/http-service/http-problem.ts';
import { BROKER_EVENT_NAME, type BrokerEvent } from '../../process/telemetry/broker-event.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { BrokerPorts, BrokerSettings } from '../broker-ports.ts';
import { BrokerProblem } from '../broker-problems.ts';
import type { IssuedPassport } from '../issue-passport.ts';
import type { ProofKind, VerifiedCaller } from '../verified-caller.ts';

/** The facts of a decision that are known so far. */
export interface Decision {
  readonly operation: BrokerEvent['operation'];
  readonly proof: ProofKind;
  readonly audience: string | undefined;
  caller?: VerifiedCaller;
  passport?: IssuedPassport;
  /** Thumbprint of the passport's holder key; of the caller's own key until the passport exists. */
  holderThumbprint?: string;
}

export interface DecisionRecorder {
  /**
   * Runs the decision and records its outcome. The answer is sent only when the audit trail has the event.
   * @param problemOf converts an error to the problem in the answer
   */
  recorded<T>(request: FastifyRequest, decision: Decision, decide: () => Promise<T>): Promise<T>;
}

type Known = Pick<BrokerPorts, 'audit' | 'metrics' | 'nowMs'>;

export function decisionRecorder(
  { audit, metrics, nowMs }: Known,
  { issuer }: BrokerSettings,
  problemOf: (error: unknown) => HttpProblem | undefined,
): DecisionRecorder {
  const record = (request: FastifyRequest, decision: Decision, code: string | undefined): boolean => {
    const event = eventOf(decision, code, {
      nowMs: nowMs(),
      issuer,
      requestId: request.id,
      address: request.ip,
    });
    const isRecorded = audit.record(event);
    const outcome = code ?? (isRecorded ? 'issued' : 'audit_unavailable');
    metrics.decided(decision.operation, decision.proof, outcome);
    return isRecorded;
  };
  return {
    async recorded(request, decision, decide) {
      let answer: Awaited<ReturnType<typeof decide>>;
      try {
        answer = await decide();
      } catch (error) {
        record(request, decision, problemOf(error)?.code ?? 'internal');
        throw error;
      }
      if (!record(request, decision, undefined)) throw new BrokerProblem('audit_unavailable');
      return answer;
    },
  };
}

interface Surroundings {
  readonly nowMs: number;
  readonly issuer: string;
  readonly requestId: string;
  /** Undefined on a Unix socket. */
  readonly address: string | undefined;
}

function eventOf(decision: Decision, code: string | undefined, known: Surroundings): BrokerEvent {
  const { caller, passport } = decision;
  return {
    event: BROKER_EVENT_NAME,
    time: new Date(known.nowMs).toISOString(),
    request_id: known.requestId,
    operation: decision.operation,
    outcome: code === undefined ? 'issued' : 'refused',
    code,
    proof: decision.proof,
    remote_address: known.address ?? 'unix_socket',
    audience: decision.audience,
    issuer: known.issuer,
    trust_domain: caller?.trustDomain,
    subject: caller?.subject,
    key_binding: caller?.keyBinding,
    credential_sha256: caller?.credentialSha256,
    holder_thumbprint: decision.holderThumbprint ?? caller?.holder.thumbprint,
    key_id: passport?.keyId,
    passport_id: passport?.passportId,
    expires_at: passport && formatTime(passport.expiresAtSeconds),
  };
}
