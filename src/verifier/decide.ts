/**
 * The pipeline: the specification's steps 1 to 5, in its order, first fault wins. Pure: request, bundle and
 * clock are arguments, a verdict comes out; nothing is consumed. Step 6, replay, is `verifier.ts`'s.
 * Source: specification "Request evaluation order (adapter)".
 */
import type { Route, Snapshot, SourceRule } from '../bundle/snapshot.ts';
import { type Credentials, readCredentials } from '../protocol/credentials.ts';
import type { PublicKey } from '../protocol/public-key.ts';
import { type Denial, deny, isDenial } from '../protocol/reasons.ts';
import { type Caller, identifyCaller } from './caller.ts';
import type { PassportCache } from './passport-cache.ts';
import type { RequestFacts } from './request-facts.ts';
import { checkAttributes } from './steps/attributes.ts';
import { checkBinding } from './steps/binding.ts';
import { checkFreshness } from './steps/freshness.ts';
import { verifyCredentials } from './steps/proof.ts';
import { matchRoute } from './steps/route.ts';
import { matchSource } from './steps/source.ts';

/** What deciding needs beside the request and the bundle. */
export interface DecisionInputs {
  readonly nowSeconds: number;
  /** Most age of the bundle for `realtime` routes, seconds. */
  readonly realtimeStalenessSeconds: number;
  readonly passports: PassportCache;
  /** Told as each step begins, for measuring. */
  readonly onStep?: (step: PipelineStep) => void;
}

export type PipelineStep = 'route' | 'source' | 'freshness' | 'attributes' | 'proof';

/** How far the steps got: what audit may say of a request, whatever became of it. */
export interface Evidence {
  route?: Route;
  credentials?: Credentials;
  caller?: Caller;
  matchedRule?: SourceRule;
}

/** A request that may go on to replay. */
export interface Verified {
  readonly kind: 'verified';
  readonly snapshot: Snapshot;
  readonly route: Route;
  readonly caller: Caller;
  readonly credentials: Credentials;
  readonly holder: PublicKey;
}

/** @param evidence filled as the steps go */
export function decide(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  inputs: DecisionInputs,
  evidence: Evidence,
): Verified | Denial {
  const { nowSeconds, onStep, passports, realtimeStalenessSeconds } = inputs;

  // 1. Route, and credentials that can be read
  onStep?.('route');
  if (snapshot === undefined) return deny('bundle_policy_missing');
  const matched = matchRoute(facts, snapshot);
  if (isDenial(matched)) return matched;
  const { route, authority } = matched;
  evidence.route = route;
  const credentials = readCredentials(facts.headers, (sha256) => passports.get(sha256)?.passport);
  if (isDenial(credentials)) return credentials;
  evidence.credentials = credentials;
  const caller = identifyCaller(snapshot.keys, credentials.passport);
  evidence.caller = caller;

  // 2. Source
  onStep?.('source');
  const rule = matchSource(route, caller);
  if (isDenial(rule)) return rule;
  evidence.matchedRule = rule;

  // 3. Freshness
  onStep?.('freshness');
  const { skewSeconds } = snapshot;
  const stale = checkFreshness(route.freshness, snapshot, nowSeconds, realtimeStalenessSeconds);
  if (stale !== undefined) return stale;

  // 4. Provenance and context
  onStep?.('attributes');
  const unfit = checkAttributes(route, caller);
  if (unfit !== undefined) return unfit;

  // 5. Passport, proof, and their binding to this request
  onStep?.('proof');
  const holder = verifyCredentials({ credentials, caller, route, nowSeconds, skewSeconds, passports });
  if (isDenial(holder)) return holder;
  const unbound = checkBinding({ facts, snapshot, route, authority, credentials });
  return unbound ?? { kind: 'verified', snapshot, route, caller, credentials, holder };
}
