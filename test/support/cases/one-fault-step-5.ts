/** The rows of step 5. */
import { thumbprintOf } from '../../../src/protocol/public-key.ts';
import type { TranscriptLineName } from '../../../src/protocol/reasons.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { BROKER_ISSUER, CLIENT_ISSUER, NOW_SECONDS, TRUST_DOMAIN } from '../fixtures/bundle-content.ts';
import { type RequestEdits, withHeader } from '../fixtures/signed-request.ts';
import { entriesWhere, KEY_ID, MAX_BROKER_PASSPORT_TTL_SECONDS, SKEW_SECONDS } from '../fixtures/snapshot.ts';
import { OTHER_TEST_KEYS } from '../fixtures/test-keys.ts';
import type { Fault } from './fault.ts';
import { BROKER } from './vector-case.ts';

const { stranger } = OTHER_TEST_KEYS;
const otherHash = Buffer.alloc(32, 7).toString('base64url');

const STEP_5_KEY: readonly Fault[] = [
  {
    step: 5,
    outcome: 'invalid_request_proof/key_unknown 401',
    // Without its entry a derived key has no grants, and its subject is what the passport claims.
    sharesPlace: ['whether the key is in the bundle', 'the subject that counts'],
    content: (content) => {
      content.derived_keys = entriesWhere(content.derived_keys, ({ key_id }) => key_id !== KEY_ID.billing);
      for (const issuer of content.issuers ?? []) {
        issuer.keys = issuer.keys.filter(({ kid }) => kid !== KEY_ID.broker);
      }
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/key_revoked 401',
    only: 'billing',
    content: (content) => {
      for (const key of content.derived_keys ?? []) key.status = 'revoked';
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/key_not_yet_valid 401',
    only: 'broker',
    sharesPlace: ["times of the broker's key"],
    content: (content) => {
      for (const issuer of content.issuers ?? []) {
        for (const key of issuer.keys) key.not_before = formatTime(NOW_SECONDS + SKEW_SECONDS + 1);
      }
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/key_expired 401',
    sharesPlace: ["times of the broker's key"],
    content: (content) => {
      for (const key of content.derived_keys ?? []) key.expires_at = formatTime(NOW_SECONDS);
      for (const issuer of content.issuers ?? []) {
        for (const key of issuer.keys) key.not_after = formatTime(NOW_SECONDS);
      }
    },
  },
];

const STEP_5_PASSPORT: readonly Fault[] = [
  {
    step: 5,
    outcome: 'invalid_request_proof/passport_signature 401',
    request: { passportKey: stranger },
    onWire: [{ what: 'signed by a stranger', plan: BROKER }],
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/claims_not_allowed 401',
    sharesPlace: ['the subject that counts'],
    content: (content) => {
      for (const issuer of content.issuers ?? []) issuer.subject_prefixes = ['ci:'];
    },
    request: {
      claims: (claims) => {
        if (claims.sub === 'client:billing') claims.context = { other: 'x' };
      },
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/subject_blocked 401',
    content: (content) => {
      content.blocked = [
        ...(content.blocked ?? []),
        { issuer: CLIENT_ISSUER, subject: 'client:billing' },
        { issuer: BROKER_ISSUER, subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing` },
      ];
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/holder_blocked 401',
    only: 'billing',
    content: (content) => {
      // There is no key to block where another fault removed it.
      const holders = (content.derived_keys ?? []).filter(({ key_id }) => key_id === KEY_ID.billing);
      content.blocked = [
        ...(content.blocked ?? []),
        ...holders.map(({ jwk }) => ({ issuer: CLIENT_ISSUER, holder_thumbprint: thumbprintOf(jwk) })),
      ];
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/passport_ttl 401',
    request: {
      claims: (claims) => {
        claims.exp = claims.iat + MAX_BROKER_PASSPORT_TTL_SECONDS + 1;
      },
    },
    onWire: [{ what: 'a broker, for too long', plan: BROKER }],
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/passport_not_yet_valid 401',
    request: {
      claims: (claims) => {
        claims.nbf = NOW_SECONDS + SKEW_SECONDS + 1;
      },
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/passport_expired 401',
    request: {
      claims: (claims) => {
        claims.iat -= 300 + SKEW_SECONDS;
        claims.exp -= 300 + SKEW_SECONDS;
      },
    },
    onWire: [{ what: 'expired', plan: BROKER }],
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/audience 403',
    request: {
      claims: (claims) => {
        claims.aud = 'https://elsewhere.example';
      },
    },
  },
];

const STEP_5_PROOF: readonly Fault[] = [
  {
    step: 5,
    outcome: 'invalid_request_proof/proof_signature 401',
    request: { proofKey: stranger },
    onWire: [{ what: 'by another key than the passport names', plan: BROKER }],
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/proof_ttl 401',
    request: {
      transcript: (transcript) => {
        transcript.expiresAtSeconds = transcript.issuedAtSeconds + 301;
      },
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/proof_not_yet_valid 401',
    sharesPlace: ["the proof's start"],
    request: {
      transcript: (transcript) => {
        transcript.issuedAtSeconds += SKEW_SECONDS + 1;
        transcript.expiresAtSeconds += SKEW_SECONDS + 1;
      },
    },
  },
  {
    step: 5,
    outcome: 'invalid_request_proof/proof_expired 401',
    sharesPlace: ["the proof's start"],
    request: {
      transcript: (transcript) => {
        transcript.issuedAtSeconds -= 60 + SKEW_SECONDS;
        transcript.expiresAtSeconds -= 60 + SKEW_SECONDS;
      },
    },
  },
];

const difference = (line: TranscriptLineName, transcript: RequestEdits['transcript'] & object): Fault => ({
  step: 5,
  outcome: `request_binding_mismatch/${line} 403`,
  request: { transcript },
});

const STEP_5_BINDING: readonly Fault[] = [
  difference('auth-site', (transcript) => {
    transcript.authSite = 'shop-eu-2';
  }),
  difference('key-id', (transcript) => {
    transcript.keyId = KEY_ID.reporting;
  }),
  difference('passport-sha256', (transcript) => {
    transcript.passportSha256 = otherHash;
  }),
  difference('issuer', (transcript) => {
    transcript.issuer = 'https://other.example';
  }),
  difference('subject', (transcript) => {
    transcript.subject = 'client:other';
  }),
  difference('audience', (transcript) => {
    transcript.audience = 'https://elsewhere.example';
  }),
  difference('route-id', (transcript) => {
    transcript.routeId = 'orders-write';
  }),
  difference('method', (transcript) => {
    transcript.method = 'PUT';
  }),
  difference('scheme', (transcript) => {
    transcript.scheme = 'http';
  }),
  difference('authority', (transcript) => {
    transcript.authority = 'partners.shop.example:8443';
  }),
  difference('target', (transcript) => {
    transcript.target = '/v1/everything/17?x=%21';
  }),
  {
    ...difference('content-sha256', (transcript) => {
      transcript.contentSha256 = otherHash;
    }),
    sharesPlace: ['the body'],
  },
  {
    step: 5,
    outcome: 'request_binding_mismatch/body_unavailable 403',
    sharesPlace: ['the body'],
    request: { received: (request) => ({ ...request, body: { kind: 'unknown' } }) },
  },
  difference('headers', (transcript) => {
    transcript.headers = [];
  }),
  {
    step: 5,
    outcome: 'request_binding_mismatch/header.x-tenant 403',
    request: { received: (request) => withHeader(request, 'x-tenant', (value) => `${value}2`) },
    onWire: [
      { what: 'a header that the route requires, changed', plan: { caller: 'billing', route: 'tenants' } },
    ],
  },
];

export const STEP_5: readonly Fault[] = [
  ...STEP_5_KEY,
  ...STEP_5_PASSPORT,
  ...STEP_5_PROOF,
  ...STEP_5_BINDING,
];
