/** All cases that can run against any deployment. Apart from the first message of a replay, no request may be allowed. */
import type { ProofFormat } from '../../protocol/proof-format.ts';
import { AUTHORITY_CASES } from './cases/authority-cases.ts';
import { BINDING_FAULTS } from './cases/binding-faults.ts';
import { DPOP_CASES, DPOP_NONCE_CASES } from './cases/dpop-cases.ts';
import { FRAMING_CASES } from './cases/framing-cases.ts';
import { HTTP_SIGNATURE_CASES } from './cases/http-signature-cases.ts';
import { HTTP2_CASES } from './cases/http2-cases.ts';
import { METHOD_CASES } from './cases/method-cases.ts';
import { PROOF_FAULTS } from './cases/proof-faults.ts';
import { TARGET_CASES } from './cases/target-cases.ts';
import { faultCase, type PublicCase } from './wire/conformance-case.ts';

export const FAULT_CASES: readonly PublicCase[] = [
  ...PROOF_FAULTS.map((fault) => faultCase('invalid_request_proof', fault)),
  ...BINDING_FAULTS.map((fault) => faultCase('request_binding_mismatch', fault)),
];

export const MESSAGE_CASES: readonly PublicCase[] = [
  ...TARGET_CASES,
  ...AUTHORITY_CASES,
  ...METHOD_CASES,
  ...FRAMING_CASES,
  ...HTTP2_CASES,
];

/** Cases with transcripts. */
export const PUBLIC_CASES: readonly PublicCase[] = [...FAULT_CASES, ...MESSAGE_CASES];

/** The cases of each format that a route may accept. */
export const CASES_OF_FORMAT: { readonly [F in ProofFormat]: readonly PublicCase[] } = {
  'transcript-v1': PUBLIC_CASES,
  'http-message-signatures': HTTP_SIGNATURE_CASES,
  dpop: [...DPOP_CASES, ...DPOP_NONCE_CASES],
};
