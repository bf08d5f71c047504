/** Advice for a denial: one line for each reason, and for details that need different advice. */
import type { Denial, Reason } from '../../../protocol/reasons.ts';
import type { ComparedLine } from './explain.ts';
import { whatDiffers } from './report-members.ts';

const OF_REASON: { readonly [R in Reason]: string } = {
  bundle_policy_missing: 'the verifier has no bundle: look at /readyz and at its log',
  bundle_route_missing: 'add a route for this method, origin and path, or call one that the bundle has',
  source_issuer_mismatch:
    "allow the caller's issuer in the route's allowed_sources, or call with another identity",
  source_trust_domain_mismatch: "allow the caller's trust domain in the route's allowed_sources",
  source_subject_mismatch: "allow the caller's subject in the route's allowed_sources",
  insufficient_key_binding: 'the route wants an attested workload: call with a passport that says so',
  bundle_freshness_unknown:
    'the route has a freshness class that this version does not know: mend the route or update',
  stale_bundle_fail_closed: 'see why no freshness statement arrives: Control, or bundle freshen',
  missing_provenance:
    'the caller has no such provenance: enroll under a policy that gives it, or mend the route',
  provenance_mismatch: "the caller's provenance has another value than the route allows",
  missing_context: 'the caller has no such context: add it to the client or the passport, or mend the route',
  context_mismatch: "the caller's context has another value than the route allows",
  invalid_request_proof: 'sign the request again with the enrolled key',
  request_binding_mismatch:
    'the request changed between signer and verifier, or another one was signed: compare the lines',
  jti_replay: 'each request needs a proof of its own: look for retries below the signer, and for copies',
  replay_store_unavailable: 'look at the replay_store part of /readyz and at the run-book',
  verifier_unavailable: 'look at the log of the verifier',
};

const OF_DETAIL: { readonly [reasonAndDetail: string]: string } = {
  'bundle_route_missing/path_not_canonical':
    'send the path without dot segments, doubled slashes, needless escapes, `;` and `\\`, and sign it as sent',
  'bundle_route_missing/origin':
    "scheme and host are none of the bundle's or the route's origins: behind a rewriting proxy use --external-origin",
  'source_subject_mismatch/not_granted':
    "grant the route's resource to the client, with the access that it needs",
  'stale_bundle_fail_closed/clock':
    'the bundle was issued after the moment that is explained: take the bundle of then, or --at now',
  'stale_bundle_fail_closed/expired': 'the bundle has expired: publish or sign a new one',
  'invalid_request_proof/authorization_missing':
    'send Authorization: Passport …, or X-Proofgate-Passport where the route has passport_header',
  'invalid_request_proof/passport_repeated':
    'send the passport in X-Proofgate-Passport alone: Authorization has one, too',
  'invalid_request_proof/authorization_scheme':
    "the scheme of Authorization must be Passport, or DPoP where the route's accepted_proofs has dpop",
  'invalid_request_proof/passport_malformed':
    'send one passport, unchanged, and a SPIFFE ID in canonical form: compare docs/design/protocol.md, and look for a proxy that joins or rewrites Authorization',
  'invalid_request_proof/proof_missing':
    "send X-Proofgate-Transcript and X-Proofgate-Signature, or a signature with the site's tag where the route accepts it, and let no proxy drop them",
  'invalid_request_proof/proof_malformed':
    'compare a transcript with docs/design/protocol.md, an HTTP message signature with docs/operate/http-message-signatures.md: order, spelling, parameters, base64',
  'invalid_request_proof/proof_ambiguous':
    'send one proof: a transcript or a DPoP proof with its passport, or an HTTP message signature without a passport',
  'request_binding_mismatch/content-digest':
    'the body has another digest than the signed Content-Digest; on a route with body: unbound do not cover it',
  'invalid_request_proof/key_unknown':
    'enroll again, or check that the caller signs for this site; a key just issued: wait until every target has it',
  'invalid_request_proof/key_revoked': 'the key was revoked: enroll another one',
  'invalid_request_proof/key_not_yet_valid':
    "the issuer's key is not valid yet: look at not_before and at the clocks",
  'invalid_request_proof/key_expired': 'the key has expired: enroll again',
  'invalid_request_proof/passport_signature':
    'the passport was changed, or signed by another key or algorithm than the bundle has under its kid',
  'invalid_request_proof/claims_not_allowed':
    'the passport claims more than its key may say: compare the bundle',
  'invalid_request_proof/subject_blocked':
    "the bundle's blocked names this issuer and subject: remove the entry if that is not intended",
  'invalid_request_proof/holder_blocked':
    "the bundle's blocked names this holder key: fetch a passport for another key, or remove the entry",
  'invalid_request_proof/token_not_accepted':
    'nothing ends an access token before its time: call with a passport, or give the realtime route oauth_revocation',
  'invalid_request_proof/passport_ttl': 'the passport lives longer than its issuer may make it',
  'invalid_request_proof/passport_not_yet_valid': "set the clock of the passport's issuer",
  'invalid_request_proof/passport_expired': 'fetch or make a new passport; compare the clocks',
  'invalid_request_proof/audience': "ask for a passport with the route's audience",
  'invalid_request_proof/proof_key':
    'make the DPoP proof with the key that the passport was made for, and send its public key in the proof',
  'invalid_request_proof/proof_signature':
    'another key signed, or another text: compare the transcript or the signature base with that of the client, byte by byte',
  'invalid_request_proof/dpop_nonce':
    'sign the request once more, with the nonce of DPoP-Nonce: a DPoP library does so by itself',
  'invalid_request_proof/proof_ttl': 'a proof lives 1 to 300 seconds',
  'invalid_request_proof/proof_not_yet_valid': "set the caller's clock",
  'invalid_request_proof/proof_expired': 'sign just before sending; compare the clocks',
  'request_binding_mismatch/ath': 'make the DPoP proof for the passport that the request carries',
  'request_binding_mismatch/query':
    "a DPoP proof binds no query: send none, or add query to the route's unbound",
  'request_binding_mismatch/body':
    "a DPoP proof binds no body: send none, or add body to the route's unbound",
  'request_binding_mismatch/body_unavailable':
    'the verifier does not see the body exactly. Middleware: put it in front of body parsers. Envoy: buffer the body (with_request_body). Traefik: forwardBody. nginx and Caddy show none: use body: unbound, or proofgate proxy. A capture: add the body',
  'bundle_route_missing/no_match':
    'no route fits: compare method, case and trailing slash, and look for a route with a literal where this one has a placeholder: the literal takes precedence (bundle lint shows route_shadowed and method_shadowed)',
  'verifier_unavailable/unprotected': "call verifier.protect(server) for the application's server",
};

const ONLY_ESCAPES =
  'only escapes of the target differ: the HTTP library, a proxy or a CDN rewrote them after signing; docs/operate/cdn.md says how to find it, and which spelling arrives unchanged';

const UNCOVERED =
  'let the HTTP message signature cover this component too: Accept-Signature lists all of them';

/** @param transcript the signed lines with those of the request, if both are known */
export function hintFor(
  { reason, detail }: Pick<Denial, 'reason' | 'detail'>,
  transcript: readonly ComparedLine[] = [],
): string {
  if (reason === 'request_binding_mismatch' && transcript.some(differsInEscapesOnly)) return ONLY_ESCAPES;
  if (detail?.startsWith('component.')) return UNCOVERED;
  return OF_DETAIL[`${reason}/${detail}`] ?? OF_REASON[reason];
}

function differsInEscapesOnly({ name, signed, rebuilt }: ComparedLine): boolean {
  if (name !== 'target' || signed === undefined || rebuilt.kind !== 'value') return false;
  return whatDiffers(signed, rebuilt.value) === 'escapes';
}
