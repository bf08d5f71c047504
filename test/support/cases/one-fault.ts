/**
 * Every row of the decision table (docs/design/protocol.md "Decision: first fault wins"), as one fault each, in the table's
 * order. Faults can be combined, because each declares its change where it applies.
 */
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { PASSPORT_HEADER, SIGNATURE_HEADER, TRANSCRIPT_HEADER } from '../../../src/protocol/wire-names.ts';
import { UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { NOW_SECONDS } from '../fixtures/bundle-content.ts';
import { type RequestEdits, withHeader, withoutHeader } from '../fixtures/signed-request.ts';
import { MAX_STALENESS_SECONDS, routeContentOf, SKEW_SECONDS, sourcesOf } from '../fixtures/snapshot.ts';
import type { OnWire, Outcome } from './denial-case.ts';
import type { Fault, TableCaller } from './fault.ts';
import { STEP_5 } from './one-fault-step-5.ts';

const STEP_1: readonly Fault[] = [
  {
    step: 1,
    outcome: 'bundle_policy_missing 503',
    noBundle: true,
    onWire: [{ what: 'no bundle was ever loaded', state: 'no_bundle' }],
  },
  {
    step: 1,
    outcome: 'bundle_route_missing/path_not_canonical 403',
    request: { received: (request) => ({ ...request, target: '/v1/./everything/17' }) },
  },
  {
    step: 1,
    outcome: 'bundle_route_missing/origin 403',
    request: { received: (request) => ({ ...request, authority: 'api.shop.example:8443' }) },
  },
  {
    step: 1,
    outcome: 'bundle_route_missing/no_match 403',
    request: { received: (request) => ({ ...request, method: 'post' }) },
  },
  {
    step: 1,
    outcome: 'invalid_request_proof/authorization_missing 401',
    sharesPlace: ['Authorization'],
    request: { received: (request) => withoutHeader(request, 'authorization') },
  },
  {
    step: 1,
    outcome: 'invalid_request_proof/authorization_scheme 401',
    sharesPlace: ['the scheme'],
    request: {
      received: (request) =>
        withHeader(request, 'authorization', (value) => value.replace('Passport', 'Bearer')),
    },
  },
  {
    step: 1,
    outcome: 'invalid_request_proof/passport_repeated 401',
    sharesPlace: ['Authorization', 'the scheme'],
    content: (content) => {
      routeContentOf(content, 'everything').passport_header = 'X-Proofgate-Passport';
    },
    request: {
      received: (request) => {
        const [, jws = ''] =
          request.headers.find(({ name }) => name === 'authorization')?.value.split(' ') ?? [];
        return { ...request, headers: [...request.headers, { name: PASSPORT_HEADER, value: jws }] };
      },
    },
  },
  {
    step: 1,
    outcome: 'invalid_request_proof/passport_malformed 401',
    request: { received: (request) => withHeader(request, 'authorization', (value) => `${value}.`) },
  },
  {
    step: 1,
    outcome: 'invalid_request_proof/proof_missing 401',
    request: { received: (request) => withoutHeader(request, SIGNATURE_HEADER) },
  },
  {
    step: 1,
    outcome: 'invalid_request_proof/proof_malformed 401',
    request: { received: (request) => withHeader(request, TRANSCRIPT_HEADER, (value) => `${value}=`) },
  },
];

const STEP_2: readonly Fault[] = [
  {
    step: 2,
    outcome: 'source_issuer_mismatch 403',
    content: (content) => {
      for (const source of sourcesOf(content, 'everything')) source.issuer = 'https://other.example';
    },
  },
  {
    step: 2,
    outcome: 'source_trust_domain_mismatch 403',
    content: (content) => {
      for (const source of sourcesOf(content, 'everything')) {
        source.trust_domain = 'other.example';
        source.subject_prefix &&= source.subject_prefix.replace('shop.example', 'other.example');
      }
    },
  },
  {
    step: 2,
    outcome: 'source_subject_mismatch 403',
    content: (content) => {
      for (const source of sourcesOf(content, 'everything')) {
        source.subject_exact &&= `${source.subject_exact}:other`;
        source.subject_prefix &&= source.subject_prefix.replace('/ns/prod/', '/ns/dev/');
      }
    },
  },
  {
    step: 2,
    outcome: 'insufficient_key_binding 403',
    content: (content) => {
      for (const source of sourcesOf(content, 'everything'))
        source.required_key_binding = 'attested_workload';
    },
    request: {
      claims: (claims) => {
        claims.key_binding = 'software';
      },
    },
    onWire: [
      {
        what: 'a derived key where attestation is required',
        plan: { caller: 'billing', route: 'attested' },
      },
      {
        what: 'a software passport where attestation is required',
        plan: { caller: 'automation', route: 'attested' },
      },
    ],
  },
  {
    step: 2,
    outcome: 'source_subject_mismatch/not_granted 403',
    only: 'billing',
    sharesPlace: ['whether the key is in the bundle'],
    content: (content) => {
      for (const client of content.clients ?? []) {
        for (const grant of client.grants) grant.access = 'read';
      }
    },
  },
];

const STEP_3: readonly Fault[] = [
  {
    step: 3,
    outcome: 'bundle_freshness_unknown 503',
    content: (content) => {
      routeContentOf(content, 'everything').freshness_class = 'eventual';
    },
    onWire: [{ what: 'an unknown freshness class', plan: { caller: 'billing', route: 'future' } }],
  },
  {
    step: 3,
    outcome: 'stale_bundle_fail_closed/clock 503',
    sharesPlace: ['issued_at', 'expires_at'],
    content: (content) => {
      content.issued_at = formatTime(NOW_SECONDS + SKEW_SECONDS + 1);
    },
    onWire: [{ what: 'a bundle from the future', state: 'future_bundle' }],
  },
  {
    step: 3,
    outcome: 'stale_bundle_fail_closed/expired 503',
    sharesPlace: ['expires_at'],
    content: (content) => {
      content.issued_at = formatTime(NOW_SECONDS - SKEW_SECONDS - 1);
      content.expires_at = formatTime(NOW_SECONDS - SKEW_SECONDS);
    },
    onWire: [{ what: 'a bundle that has expired', state: 'expired_bundle' }],
  },
  {
    step: 3,
    outcome: 'stale_bundle_fail_closed/stale 503',
    sharesPlace: ['issued_at'],
    content: (content) => {
      content.issued_at = formatTime(NOW_SECONDS - MAX_STALENESS_SECONDS - 1);
    },
    onWire: [{ what: 'a realtime route, nothing said lately', plan: { caller: 'billing', route: 'prices' } }],
  },
];

/** Changes the entry of a derived key, its client, and the claims of passports alike. */
function attributesFault(
  outcome: Outcome,
  kind: 'provenance' | 'context',
  change: (attributes: { [name: string]: string }) => void,
): Fault {
  return {
    step: 4,
    outcome,
    content: (content) => {
      const entries = kind === 'context' ? content.clients : content.derived_keys;
      for (const entry of entries ?? []) {
        const attributes = (entry as { [K in typeof kind]?: { [name: string]: string } })[kind];
        if (attributes !== undefined) change(attributes);
      }
    },
    request: {
      claims: (claims) => {
        const attributes = claims[kind];
        if (attributes !== undefined) change(attributes);
      },
    },
  };
}

const STEP_4: readonly Fault[] = [
  attributesFault('missing_provenance/zone 403', 'provenance', (provenance) => {
    delete provenance.zone;
  }),
  attributesFault('provenance_mismatch/image 403', 'provenance', (provenance) => {
    provenance.image = 'sha256:cccc';
  }),
  attributesFault('missing_context/team 403', 'context', (context) => {
    delete context.team;
  }),
  attributesFault('context_mismatch/environment 403', 'context', (context) => {
    context.environment = 'staging';
  }),
];

/** Issued before the verifier or its Redis began to record proofs, and still within five minutes. */
const fromBefore: RequestEdits = {
  transcript: (transcript) => {
    transcript.issuedAtSeconds -= 240;
    transcript.expiresAtSeconds = transcript.issuedAtSeconds + 300;
  },
};

const UNAVAILABLE_ON_WIRE: { readonly [W in 'store' | 'fenced' | 'quota']: readonly OnWire[] } = {
  store: [{ what: 'Redis is gone', state: 'redis_gone' }],
  fenced: [
    { what: 'older than the memory of the process', edits: fromBefore },
    { what: 'older than the memory of Redis', edits: fromBefore, state: 'redis' },
  ],
  // Needs two requests of one holder, so it is in site-cases.ts.
  quota: [],
};

const STEP_6: readonly Fault[] = [
  {
    step: 6,
    outcome: 'jti_replay 403',
    sharesPlace: ['replay'],
    replay: { kind: 'replayed' },
    onWire: [
      { what: 'in memory', isReplay: true },
      { what: 'in Redis', isReplay: true, state: 'redis' },
    ],
  },
  ...(['store', 'fenced', 'quota'] as const).map(
    (why): Fault => ({
      step: 6,
      outcome: `replay_store_unavailable/${why} 503`,
      sharesPlace: ['replay'],
      replay: UNAVAILABLE[why],
      onWire: UNAVAILABLE_ON_WIRE[why],
    }),
  ),
];

export const FAULTS: readonly Fault[] = [...STEP_1, ...STEP_2, ...STEP_3, ...STEP_4, ...STEP_5, ...STEP_6];

/** Faults that this caller's request can have. */
export function faultsOf(caller: TableCaller): readonly Fault[] {
  return FAULTS.filter(({ only }) => only === undefined || only === caller);
}
