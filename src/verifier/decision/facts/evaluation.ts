/** State of one request's evaluation: the inputs of the checks, and what they have found so far. */
import type { BundleKey, Route, Snapshot, SourceRule } from '../../../bundle/compile/snapshot.ts';
import type { AcceptedCredentials } from '../../../protocol/accepted-credentials.ts';
import type { DpopNonces } from '../../../protocol/dpop-nonce.ts';
import type { PublicKey } from '../../../protocol/public-key.ts';
import type { Caller } from './caller.ts';
import type { PassportCache } from './passport-cache.ts';
import type { RequestFacts } from './request-facts.ts';
import type { TokenCache } from './token-cache.ts';

/** What a decision needs besides the request and the bundle. */
export interface DecisionInputs {
  readonly nowSeconds: number;
  /** Maximum age of the bundle for `realtime` routes, seconds. */
  readonly realtimeStalenessSeconds: number;
  readonly passports: PassportCache;
  /** Default: none. */
  readonly tokens?: TokenCache;
  /** Default: none are accepted. */
  readonly dpopNonces?: Pick<DpopNonces, 'accepts'> | undefined;
}

/** What the checks found that the audit event may include, whatever the decision. */
export interface Evidence {
  route?: Route;
  credentials?: AcceptedCredentials;
  /** Undefined also for an HTTP message signature of an unknown key, and an access token of an unknown issuer or without a caller. */
  caller?: Caller;
  matchedRule?: SourceRule;
  /** The bundle is too old for the route, and a break-glass statement suspends its age. */
  isBreakGlass?: true;
}

export interface Evaluation {
  readonly facts: RequestFacts;
  readonly snapshot: Snapshot | undefined;
  readonly inputs: DecisionInputs;
  readonly evidence: Evidence;
  /** The request's authority in lower case, without the scheme's default port: the form that the transcript must state. */
  authority: string | undefined;
  /** The bundle's key that the passport or the signature names. */
  key: BundleKey | undefined;
  /** The key in the passport's `cnf`, undefined when its point is not a valid public key; without a passport `key`. */
  holder: PublicKey | undefined;
}

export function newEvaluation(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  inputs: DecisionInputs,
  evidence: Evidence,
): Evaluation {
  return { facts, snapshot, inputs, evidence, authority: undefined, key: undefined, holder: undefined };
}

/**
 * Returns what an earlier check found. Checks run after those that they need, so a missing value is a programming
 * error.
 * @throws TypeError which the verifier turns into a denial
 */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('a check ran before one that it needs');
  return value;
}
