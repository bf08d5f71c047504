/** Denials in memory and on the wire that the published vectors do not have. */
import type { ClaimsDraft, RequestEdits } from '../fixtures/signed-request.ts';
import { OTHER_TEST_KEYS } from '../fixtures/test-keys.ts';
import { ROUTES } from '../site/routes.ts';
import type { Outcome } from './denial-case.ts';
import { type Case, type CaseGroup, claims, read } from './request-cases.ts';
import { BROKER } from './vector-case.ts';

function wireCase(what: string, outcome: Outcome, edits: RequestEdits, plan = BROKER): Case {
  return { name: what, plan, edits, outcome, onWire: { what } };
}

const target = (what: string, detail: 'path_not_canonical' | 'no_match', path: string) =>
  wireCase(
    what,
    `bundle_route_missing/${detail} 403`,
    {
      transcript: (draft) => void Object.assign(draft, { target: path }),
      received: (request) => ({ ...request, target: path }),
    },
    read,
  );
const times = (change: (draft: ClaimsDraft) => void): RequestEdits => ({ claims: change });

export const WIRE_CASES: readonly CaseGroup[] = [
  {
    title: 'targets',
    cases: [
      target('an empty segment in front', 'path_not_canonical', '//v1/orders/4711'),
      target('an empty segment within', 'path_not_canonical', '/v1//orders/4711'),
      target('a path parameter', 'path_not_canonical', '/v1/orders/4711;v=2'),
      target('an escape that is not UTF-8', 'path_not_canonical', '/v1/orders/%80'),
      target('an escaped percent sign', 'path_not_canonical', '/v1/orders/%2541'),
      target('another path', 'no_match', '/v2/orders/4711'),
    ],
  },
  {
    title: 'claims',
    cases: [
      wireCase(
        'a subject outside every selector',
        'source_subject_mismatch 403',
        claims({ sub: 'spiffe://shop.example/ns/dev/sa/checkout' }),
      ),
      wireCase(
        'a derived key that claims another client',
        'invalid_request_proof/claims_not_allowed 401',
        claims({ sub: 'client:reporting' }),
        read,
      ),
      wireCase(
        'issued later',
        'invalid_request_proof/passport_not_yet_valid 401',
        times((draft) => {
          draft.iat += 60;
          draft.exp = draft.iat + 60;
        }),
      ),
      wireCase(
        'not before later',
        'invalid_request_proof/passport_not_yet_valid 401',
        times((draft) => {
          draft.nbf = draft.iat + 60;
        }),
      ),
      wireCase(
        "another route's audience",
        'invalid_request_proof/audience 403',
        claims({ aud: ROUTES.admin.audience }),
      ),
      wireCase(
        "a passport with everything but a known issuer's key",
        'invalid_request_proof/key_unknown 401',
        {
          joseHeader: (header) => void Object.assign(header, { kid: 'broker-of-mine' }),
          passportKey: OTHER_TEST_KEYS.stranger,
          transcript: (draft) => void Object.assign(draft, { keyId: 'broker-of-mine' }),
        },
      ),
    ],
  },
  {
    title: 'signed headers, on the wire',
    cases: [
      wireCase(
        'a header that the route requires, repeated',
        'request_binding_mismatch/header.x-tenant 403',
        {
          received: (request) => ({
            ...request,
            headers: [...request.headers, { name: 'x-tenant', value: 'south' }],
          }),
        },
        { caller: 'billing', route: 'tenants' },
      ),
    ],
  },
];
