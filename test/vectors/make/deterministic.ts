/** Makes the requests of the tests' corpus deterministic: identifiers from names, ES256 by RFC 6979. */
import { createHash, type KeyObject } from 'node:crypto';
import { signMessage } from '../../../src/protocol/signature.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { SIGNATURE_HEADER, TRANSCRIPT_HEADER } from '../../../src/protocol/wire-names.ts';
import {
  bothEdits,
  type RequestEdits,
  type RequestPlan,
  signRequest,
  type WireRequest,
  withHeader,
} from '../../support/fixtures/signed-request.ts';
import { signEs256Deterministically } from './deterministic-es256.ts';
import { TEST_SITE_KEYS } from './test-keys.ts';

/** 128 bits as 22 characters of base64url, from a text. */
function jtiFrom(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url');
}

/** @param name makes the request's identifiers */
export function signVectorRequest(name: string, plan: RequestPlan, edits: RequestEdits = {}): WireRequest {
  const passportKey = edits.passportKey ?? TEST_SITE_KEYS[plan.caller];
  const proofKey = edits.proofKey ?? plan.holder ?? TEST_SITE_KEYS[plan.caller];
  const sameEachTime: RequestEdits = {
    claims: (claims) => {
      claims.jti = `passport-${jtiFrom(`passport of ${name}`)}`;
    },
    passport: (jws) => resignedJws(jws, passportKey),
    transcript: (transcript) => {
      transcript.jti = jtiFrom(name);
    },
    received: (request) => resignedProof(request, proofKey),
  };
  return signRequest(TEST_SITE_KEYS, plan, bothEdits(sameEachTime, edits)).wire;
}

export function signSameEachTime(key: SigningKey, message: Uint8Array): Buffer {
  const { algorithm } = key.publicKey;
  return algorithm === 'ES256'
    ? signEs256Deterministically(privateScalarOf(key.privateKey), message)
    : signMessage(algorithm, key.privateKey, message);
}

function resignedJws(jws: string, key: SigningKey): string {
  const input = jws.slice(0, jws.lastIndexOf('.'));
  return `${input}.${signSameEachTime(key, Buffer.from(input)).toString('base64url')}`;
}

function resignedProof(request: WireRequest, key: SigningKey): WireRequest {
  const transcript = request.headers.find(({ name }) => name === TRANSCRIPT_HEADER)?.value ?? '';
  const signature = signSameEachTime(key, Buffer.from(transcript, 'base64url'));
  return withHeader(request, SIGNATURE_HEADER, () => signature.toString('base64url'));
}

function privateScalarOf(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url');
}
