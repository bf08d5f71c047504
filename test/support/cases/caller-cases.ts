/** Further ways to the rows of the decision table about callers and keys, and odd requests that are allowed. */
import { CLIENT_ISSUER } from '../fixtures/bundle-content.ts';
import { CONTEXT, KEY_ID, PROVENANCE } from '../fixtures/snapshot.ts';
import { OTHER_TEST_KEYS } from '../fixtures/test-keys.ts';
import { type CaseGroup, claims, everything, keys, read, write } from './request-cases.ts';

export const CALLER_CASES: readonly CaseGroup[] = [
  {
    title: 'who may call what',
    cases: [
      ...(['billing', 'reporting', 'broker', 'brokerEc', 'automation'] as const).map((caller) => ({
        name: `${caller} reads`,
        plan: { caller, route: 'orders-read' } as const,
        outcome: 'allowed',
      })),
      {
        name: 'another holder key',
        plan: { ...read, caller: 'broker', holder: OTHER_TEST_KEYS.holder },
        outcome: 'allowed',
      },
      {
        name: 'a P-256 holder key',
        plan: { ...read, caller: 'broker', holder: OTHER_TEST_KEYS.holderEc },
        outcome: 'allowed',
      },
      {
        name: 'write without the grant',
        plan: { ...write, caller: 'reporting' },
        outcome: 'source_subject_mismatch/not_granted 403',
        onWire: { what: 'a write by a client that may only read' },
      },
      {
        name: 'DELETE is write',
        plan: { caller: 'reporting', route: 'orders-cancel' },
        outcome: 'source_subject_mismatch/not_granted 403',
      },
      {
        name: 'no grant of the resource',
        plan: { caller: 'reporting', route: 'uploads' },
        outcome: 'source_subject_mismatch/not_granted 403',
      },
      {
        name: 'a revoked key',
        plan: { ...read, caller: 'revoked' },
        outcome: 'invalid_request_proof/key_revoked 401',
        onWire: { what: 'a revoked derived key' },
      },
      { name: 'attested, by a broker', plan: { caller: 'broker', route: 'attested' }, outcome: 'allowed' },
      {
        name: 'attested, by its broker for a software key',
        plan: { caller: 'broker', route: 'attested' },
        edits: claims({ key_binding: 'software' }),
        outcome: 'insufficient_key_binding 403',
      },
      {
        name: 'attested, by a derived key that claims to be',
        plan: { caller: 'billing', route: 'attested' },
        edits: claims({ key_binding: 'attested_workload' }),
        outcome: 'source_issuer_mismatch 403',
      },
    ],
  },
  {
    title: 'an identity that is not the one of its derived key',
    cases: [
      {
        name: 'another trust domain',
        plan: read,
        edits: claims({ trust_domain: 'other.example' }),
        outcome: 'source_trust_domain_mismatch 403',
        onWire: { what: 'another trust domain' },
      },
      {
        name: 'a subject that the route does not know',
        plan: read,
        edits: claims({ sub: 'client:unknown' }),
        outcome: 'source_subject_mismatch 403',
      },
      {
        name: 'an issuer that the route does not know',
        plan: read,
        edits: claims({ iss: 'https://other.shop.example' }),
        outcome: 'source_issuer_mismatch 403',
        onWire: { what: 'an issuer without a rule' },
      },
      {
        name: 'the identity of a broker that the route admits',
        plan: read,
        edits: claims({
          iss: 'https://broker.shop.example',
          sub: 'spiffe://shop.example/ns/prod/sa/orders',
          key_binding: 'attested_workload',
        }),
        outcome: 'invalid_request_proof/claims_not_allowed 401',
      },
    ],
  },
  {
    title: 'more than the key may say',
    cases: [
      {
        name: 'a software broker that attests',
        plan: { ...read, caller: 'automation' },
        edits: claims({ key_binding: 'attested_workload' }),
        outcome: 'invalid_request_proof/claims_not_allowed 401',
      },
      {
        name: 'one broker in the name of another',
        plan: { caller: 'automation', route: 'attested' },
        edits: claims({
          iss: 'https://broker.shop.example',
          sub: 'spiffe://shop.example/ns/prod/sa/x',
          key_binding: 'attested_workload',
        }),
        outcome: 'invalid_request_proof/claims_not_allowed 401',
        onWire: { what: 'an issuer with the key of another' },
      },
      {
        name: 'a broker that mints a client',
        plan: { ...write, caller: 'broker' },
        edits: claims({ iss: CLIENT_ISSUER, sub: 'client:billing', key_binding: 'software' }),
        outcome: 'invalid_request_proof/claims_not_allowed 401',
      },
      ...[
        { key_binding: 'attested_workload' },
        { provenance: { ...PROVENANCE, extra: 'x' } },
        { provenance: { image: PROVENANCE.image } },
        { context: { ...CONTEXT, team: 'other' } },
        { context: {} },
        { cnf: { jwk: OTHER_TEST_KEYS.holder.publicKey.jwk } },
        // The identity, a point of order 1, which OpenSSL accepts and the rule for keys rejects.
        { cnf: { jwk: { kty: 'OKP', crv: 'Ed25519', x: `AQ${'A'.repeat(41)}` } } },
      ].map((change) => ({
        name: `a derived key with ${JSON.stringify(change).slice(0, 60)}`,
        plan: read,
        edits: claims(change),
        outcome: 'invalid_request_proof/claims_not_allowed 401',
      })),
      {
        name: 'a broker for a holder key of small order',
        plan: { ...read, caller: 'broker' },
        edits: claims({ cnf: { jwk: { kty: 'OKP', crv: 'Ed25519', x: `AQ${'A'.repeat(41)}` } } }),
        outcome: 'invalid_request_proof/claims_not_allowed 401',
      },
      {
        name: 'a derived key without provenance and context',
        plan: read,
        edits: claims({ provenance: undefined, context: undefined }),
        outcome: 'allowed',
      },
    ],
  },
  {
    title: 'whose signature',
    cases: [
      ...(['billing', 'brokerEc', 'reporting'] as const).map((other) => ({
        name: `a broker's passport under the kid of ${other}`,
        plan: { ...read, caller: 'broker' } as const,
        edits: {
          joseHeader: (header: { [name: string]: unknown }) =>
            void Object.assign(header, { kid: KEY_ID[other] }),
        },
        outcome: 'invalid_request_proof/passport_signature 401',
      })),
      {
        name: 'the algorithm of another key',
        plan: { ...read, caller: 'broker' },
        edits: { passportKey: keys.brokerEc },
        outcome: 'invalid_request_proof/passport_signature 401',
      },
      {
        name: 'the right signature under the wrong algorithm',
        plan: { ...read, caller: 'broker' },
        edits: { joseHeader: (header) => void Object.assign(header, { alg: 'ES256' }) },
        outcome: 'invalid_request_proof/passport_signature 401',
      },
      {
        name: "the broker's signature instead of the holder's",
        plan: { ...read, caller: 'broker', holder: OTHER_TEST_KEYS.holder },
        edits: { proofKey: keys.broker },
        outcome: 'invalid_request_proof/proof_signature 401',
      },
    ],
  },
  {
    title: 'provenance and context',
    cases: [
      {
        name: 'none at all: the first name in byte order',
        plan: everything,
        edits: claims({ provenance: undefined, context: undefined }),
        outcome: 'missing_provenance/image 403',
      },
      {
        name: 'both wrong: the first name in byte order',
        plan: everything,
        edits: claims({ provenance: { image: 'x', zone: 'x' } }),
        outcome: 'provenance_mismatch/image 403',
      },
      {
        name: 'one of two values that are allowed',
        plan: everything,
        edits: claims({ provenance: { ...PROVENANCE, image: 'sha256:bbbb', other: 'y' } }),
        outcome: 'allowed',
      },
      {
        name: 'no context',
        plan: everything,
        edits: claims({ context: {} }),
        outcome: 'missing_context/environment 403',
      },
      {
        name: 'a name that every object inherits',
        plan: everything,
        edits: claims({ context: { constructor: 'x', environment: 'production' } }),
        outcome: 'missing_context/team 403',
      },
    ],
  },
];
