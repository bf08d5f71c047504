/**
 * Decides on a request before replay: runs {@link STEPS} and stops at the first denial. Pure: a function of request,
 * bundle and clock that consumes nothing. Step 6, replay, comes last: `../verifier.ts`.
 */
import type { Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import type { AcceptedCredentials } from '../../protocol/accepted-credentials.ts';
import type { OtherSignatures } from '../../protocol/http-signature.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import type { Denial } from '../../protocol/reasons.ts';
import type { Caller } from './facts/caller.ts';
import {
  type DecisionInputs,
  type Evaluation,
  type Evidence,
  newEvaluation,
  required,
} from './facts/evaluation.ts';
import type { RequestFacts } from './facts/request-facts.ts';
import { STEPS, type StepName } from './steps.ts';

/** A request that passed steps 1 to 5. */
export interface Verified {
  readonly kind: 'verified';
  readonly snapshot: Snapshot;
  readonly route: Route;
  readonly caller: Caller;
  readonly credentials: AcceptedCredentials;
  readonly proofFormat: ProofFormat;
  readonly holder: PublicKey;
}

export interface DecideInputs extends DecisionInputs {
  /** Called as each step begins, for the latency metrics. */
  readonly onStep?: (step: StepName) => void;
}

/** @param evidence filled in as the checks pass */
export function decide(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  inputs: DecideInputs,
  evidence: Evidence,
): Verified | Denial {
  const { onStep } = inputs;
  const evaluation = newEvaluation(facts, snapshot, inputs, evidence);
  for (const { name, checks } of STEPS) {
    onStep?.(name);
    for (const check of checks) {
      if (check.skips?.(evidence) === true) continue;
      const denial = check.run(evaluation);
      if (denial !== undefined) return denial;
    }
  }
  return verifiedOf(evaluation);
}

/** The result of an evaluation in which every check passed. */
export function verifiedOf({ evidence, holder, snapshot }: Evaluation): Verified {
  const credentials = required(evidence.credentials);
  return {
    kind: 'verified',
    snapshot: required(snapshot),
    route: required(evidence.route),
    caller: required(evidence.caller),
    credentials,
    proofFormat: credentials.format,
    holder: required(holder),
  };
}

/** The decision on one request, replay and record included. */
export type Decision = AllowedDecision | DeniedDecision | ObservedDecision;

export interface AllowedDecision {
  readonly kind: 'allowed';
  /** UUID; the upstream and the audit event carry it too. */
  readonly decisionId: string;
  readonly snapshot: Snapshot;
  readonly route: Route;
  readonly caller: Caller;
  /** RFC 7638 thumbprint of the key that signed the proof. */
  readonly holderThumbprint: string;
  /** The format of its proof. */
  readonly proofFormat: ProofFormat;
  /** Identifies the presented passport: base64url SHA-256 of its JWS. Undefined for a request without one. */
  readonly passportSha256: string | undefined;
  /** HTTP message signatures of others, which the upstream receives. */
  readonly otherSignatures: OtherSignatures | undefined;
}

export interface DeniedDecision {
  readonly kind: 'denied';
  readonly decisionId: string;
  readonly denial: Denial;
  /** Set when the request matched a route. */
  readonly routeId: string | undefined;
  /** `Accept-Signature`: what a signature must cover, for a request without a proof where the route accepts one. */
  readonly acceptSignature?: string | undefined;
  /** `WWW-Authenticate` of a 401, where the route accepts DPoP proofs; undefined: the usual one. */
  readonly challenge?: string | undefined;
  /** `DPoP-Nonce`: a nonce for the request's repetition. */
  readonly dpopNonce?: string | undefined;
}

/** A denial that lets the request pass without identity, because its route is observed. */
export interface ObservedDecision {
  readonly kind: 'observed';
  readonly decisionId: string;
  /** What an enforced route would answer. */
  readonly denial: Denial;
  /** Undefined for a request that no route matches. */
  readonly route: Route | undefined;
  /** Whether `Authorization` may hold a passport, and must not reach the upstream. */
  readonly removesAuthorization: boolean;
  /** Further headers that may hold a proof for the site, which must not reach the upstream. */
  readonly unusedProofs: readonly string[];
}
