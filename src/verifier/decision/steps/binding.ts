/**
 * The end of step 5: the transcript rebuilt from request, bundle and passport must equal the signed one, byte for byte. Other
 * formats have files of their own.
 */
import type { Route } from '../../../bundle/compile/snapshot.ts';
import { contentSha256 } from '../../../protocol/body-binding.ts';
import type { Credentials } from '../../../protocol/credentials.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import {
  firstDifference,
  NOT_BOUND,
  type RebuiltTranscript,
  type Transcript,
} from '../../../protocol/transcript.ts';
import { type Evaluation, required } from '../facts/evaluation.ts';
import type { RequestFacts } from '../facts/request-facts.ts';
import { checkDpopBinding } from './dpop-binding.ts';
import { checkCoverage } from './signature-binding.ts';

export function checkBinding(evaluation: Evaluation): Denial | undefined {
  const credentials = required(evaluation.evidence.credentials);
  if (credentials.format === 'dpop') return checkDpopBinding(evaluation, credentials);
  if (credentials.format !== 'transcript-v1') return checkCoverage(evaluation, credentials);
  // A transcript has exactly one encoding, so texts are equal when their values are.
  const difference = firstDifference(
    credentials.proof.transcript,
    rebuildTranscript(evaluation, credentials),
  );
  return difference === undefined ? undefined : deny('request_binding_mismatch', difference);
}

/** Builds the transcript that the request, the bundle and the passport imply. */
export function rebuildTranscript(
  { authority, evidence, facts, snapshot }: Evaluation,
  { passport, proof }: Credentials,
): RebuiltTranscript {
  const route = required(evidence.route);
  return {
    authSite: required(snapshot).authSite,
    keyId: passport.keyId,
    passportSha256: passport.sha256,
    issuer: passport.claims.issuer,
    subject: passport.claims.subject,
    audience: route.audience,
    routeId: route.routeId,
    method: facts.method,
    scheme: facts.scheme,
    authority: required(authority),
    target: facts.target,
    jti: proof.transcript.jti,
    issuedAtSeconds: proof.transcript.issuedAtSeconds,
    expiresAtSeconds: proof.transcript.expiresAtSeconds,
    contentSha256: boundBody(facts, route),
    headers: rebuildHeaders(proof.transcript, route, facts),
  };
}

const NO_BODY = new Uint8Array(0);

/** undefined when the body is bound but not known exactly. */
function boundBody({ method, body }: RequestFacts, route: Route): string | undefined {
  switch (body.kind) {
    case 'exact':
      return contentSha256(method, route.body, body.bytes);
    case 'hashed':
      return route.body === 'bound' ? body.sha256 : NOT_BOUND;
    case 'none':
      return contentSha256(method, route.body, NO_BODY);
    case 'unknown':
      return route.body === 'unbound' ? NOT_BOUND : undefined;
  }
}

/** Headers that the caller signed and those that the route requires, sorted. */
function rebuildHeaders(sent: Transcript, route: Route, facts: RequestFacts): RebuiltTranscript['headers'] {
  if (sent.headers.length === 0 && route.signedHeaders.length === 0) return [];
  const names = new Set([...sent.headers.map(({ name }) => name), ...route.signedHeaders]);
  return [...names].sort().map((name) => {
    const header = facts.headers.lookup(name);
    return { name, value: header.kind === 'single' ? header.value : undefined };
  });
}
