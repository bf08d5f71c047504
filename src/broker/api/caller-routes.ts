/** Routes for verified callers: passports and signing profiles. */
import type { FastifyRequest } from 'fastify';
import { COMMON_PROBLEMS } from '../../process/http-service/http-problem.ts';
import type { BrokerOperation } from '../../protocol/broker-text.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import {
  type CallerProof,
  PASSPORT_ANSWER,
  PASSPORT_REQUEST,
  PROFILES_ANSWER,
  PROFILES_REQUEST,
} from '../broker-contract.ts';
import type { BrokerPorts } from '../broker-ports.ts';
import { BROKER_PROBLEMS, type BrokerProblemCode } from '../broker-problems.ts';
import { admitCaller, type Issuing, issuePassport } from '../issue-passport.ts';
import type { ProofContext } from '../proofs/proof-context.ts';
import { verifyProof } from '../proofs/verify-proof.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import type { BrokerApp } from './broker-http.ts';
import type { Decision, DecisionRecorder } from './decision-record.ts';

export interface CallerRoutesOptions {
  readonly ports: Pick<BrokerPorts, 'connectionOf' | 'signingProfiles'>;
  readonly recorder: DecisionRecorder;
  readonly issuing: Issuing;
  readonly proofs: ProofContext;
}

/** `audience` of an operation without an audience. */
const NO_AUDIENCE = '-';

/** Any proof may fail in any way that is not common to all routes; some need a setting. */
export const CALLER_PROBLEMS: readonly BrokerProblemCode[] = ownCodes().filter(
  (code) => !['proofs_not_served', 'connection_not_direct', 'request_not_signable'].includes(code),
);

export function registerCallerRoutes(app: BrokerApp, options: CallerRoutesOptions): void {
  registerPassports(app, options);
  registerProfiles(app, options);
}

function registerPassports(app: BrokerApp, options: CallerRoutesOptions): void {
  const { issuing, recorder } = options;
  app.post(
    '/v1/passports',
    {
      config: { problems: CALLER_PROBLEMS },
      schema: { summary: 'Issue a passport', body: PASSPORT_REQUEST, response: { 200: PASSPORT_ANSWER } },
    },
    async (request) => {
      const { audience, proof } = request.body;
      const decision: Decision = { operation: 'passport', proof: proof.kind, audience };
      return recorder.recorded(request, decision, async () => {
        const caller = await verifiedCaller(options, request, 'passport', audience, proof, decision);
        const passport = await issuePassport(issuing, caller, caller.holder, audience);
        decision.passport = passport;
        return {
          passport: passport.jws,
          expires_at: formatTime(passport.expiresAtSeconds),
          holder_thumbprint: caller.holder.thumbprint,
          key_id: passport.keyId,
          issuer: issuing.settings.issuer,
          trust_domain: caller.trustDomain,
          subject: caller.subject,
          key_binding: caller.keyBinding,
        };
      });
    },
  );
}

function registerProfiles(app: BrokerApp, options: CallerRoutesOptions): void {
  const { issuing, ports, recorder } = options;
  app.post(
    '/v1/profiles',
    {
      config: { problems: CALLER_PROBLEMS },
      schema: {
        summary: "The caller's signing profiles",
        body: PROFILES_REQUEST,
        response: { 200: PROFILES_ANSWER },
      },
    },
    async (request) => {
      const { proof } = request.body;
      const decision: Decision = { operation: 'profiles', proof: proof.kind, audience: undefined };
      return recorder.recorded(request, decision, async () => {
        const caller = await verifiedCaller(options, request, 'profiles', NO_AUDIENCE, proof, decision);
        const { subject, trustDomain } = caller;
        return {
          profiles: [...ports.signingProfiles.fitting(issuing.settings.issuer, trustDomain, subject)],
        };
      });
    },
  );
}

/** Verifies and admits the caller. */
export async function verifiedCaller(
  { issuing, ports, proofs }: CallerRoutesOptions,
  request: FastifyRequest,
  operation: BrokerOperation,
  audience: string,
  proof: CallerProof,
  decision: Decision,
): Promise<VerifiedCaller> {
  const connection = ports.connectionOf(request.raw);
  const caller = await verifyProof(proofs, { operation, audience, connection }, proof);
  decision.caller = caller;
  admitCaller(issuing, caller);
  return caller;
}

function ownCodes(): BrokerProblemCode[] {
  const codes = Object.keys(BROKER_PROBLEMS) as BrokerProblemCode[];
  return codes.filter((code) => !Object.hasOwn(COMMON_PROBLEMS, code));
}
