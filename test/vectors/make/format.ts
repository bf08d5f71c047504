/** The members of the published files. `schema.json` describes the same for others, and a test validates the files against it. */
import type { PASSPORT_HEADER_MEMBER } from '../../../src/protocol/wire-names.ts';
import type { PatchOperation } from './json-patch.ts';

/** Names and values one character a byte, in the order in which the lines were sent. */
export type HeaderPair = readonly [name: string, value: string];

type BodyVector =
  | { readonly state: 'exact'; readonly base64: string }
  | { readonly state: 'none' }
  | { readonly state: 'unknown' };

/** A request as an enforcement point sees it. */
export interface ReceivedRequest {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly target: string;
  readonly headers: readonly HeaderPair[];
  readonly body: BodyVector;
}

export interface ExpectedAllowance {
  readonly outcome: 'allowed';
  /** What upstream receives, but for `x-proofgate-decision-id`. */
  readonly upstream_headers: { readonly [name: string]: string };
  /** Names of inbound headers that must not reach upstream. */
  readonly removed_headers: readonly string[];
}

export interface ExpectedDenial {
  readonly outcome: 'denied';
  readonly step: number;
  readonly reason: string;
  readonly detail?: string;
  readonly status: number;
}

export type Expected = ExpectedAllowance | ExpectedDenial;

export interface RequestVector {
  readonly name: string;
  /** Name of a bundle; null: none is loaded. */
  readonly bundle: string | null;
  /** The verifier's clock, seconds. */
  readonly now: number;
  readonly realtime_staleness_seconds: number;
  readonly request: ReceivedRequest;
  readonly expected: Expected;
}

export interface ReplayVector {
  readonly name: string;
  readonly bundle: string;
  readonly realtime_staleness_seconds: number;
  /** The embedded store of this verifier; null: any store, begun long ago and large enough. */
  readonly store: {
    readonly started_at: number;
    readonly max_records: number;
    readonly holder_quota_per_minute: number;
  } | null;
  readonly steps: readonly {
    readonly now: number;
    readonly request: ReceivedRequest;
    readonly expected: Expected;
  }[];
}

export interface KeyVector {
  readonly name: string;
  readonly alg: 'Ed25519' | 'ES256';
  /** With `d`, the private key. */
  readonly jwk: { readonly [member: string]: string };
  /** Of the public key. */
  readonly thumbprint: string;
}

export type BundleVector =
  | {
      readonly name: string;
      readonly content: object;
      /** The content as a signed document, and the key to pin for it. */
      readonly document: object;
      readonly pinned_key: object;
      readonly head: string;
    }
  | { readonly name: string; readonly from: string; readonly patch: readonly PatchOperation[] };

/** From keys and intentions to the three headers, byte for byte where keys are Ed25519. */
export interface SigningVector {
  readonly name: string;
  /** Names of keys. */
  readonly passport_key: string;
  readonly holder_key: string;
  readonly auth_site: string;
  readonly route: {
    readonly route_id: string;
    readonly audience: string;
    readonly body: 'bound' | 'unbound';
    readonly signed_headers: readonly string[];
    readonly passport_header?: typeof PASSPORT_HEADER_MEMBER;
  };
  readonly request: {
    readonly method: string;
    readonly scheme: string;
    /** As in the URL that the caller has. */
    readonly authority: string;
    readonly target: string;
    /** All that the caller sends, credentials aside. */
    readonly headers: readonly HeaderPair[];
    readonly body_base64: string;
  };
  /** Names of headers that the caller signs beside those that the route wants. */
  readonly also_signed: readonly string[];
  readonly jti: string;
  readonly issued_at: number;
  readonly expires_at: number;
  readonly passport: {
    readonly header: string;
    readonly claims: string;
    readonly signing_input_sha256: string;
    readonly jws: string;
  };
  readonly transcript: string;
  readonly transcript_sha256: string;
  readonly signature: string;
  readonly headers: {
    readonly Authorization?: string;
    readonly [PASSPORT_HEADER_MEMBER]?: string;
    readonly 'X-Proofgate-Transcript': string;
    readonly 'X-Proofgate-Signature': string;
  };
  readonly replay_identifier: string;
}

/** From a derived key and a request to the headers of an HTTP message signature, byte for byte where the key is Ed25519. */
export interface HttpMessageVector {
  readonly name: string;
  /** Name of the derived key. */
  readonly key: string;
  readonly key_id: string;
  readonly auth_site: string;
  readonly route: SigningVector['route'];
  readonly request: SigningVector['request'];
  /** Header names that the caller signs beside those that the route wants. */
  readonly also_signed: readonly string[];
  readonly nonce: string;
  readonly created: number;
  readonly expires: number;
  /** Its last line has no line feed. */
  readonly signature_base: string;
  /** To set on the request, in place of its own. */
  readonly headers: {
    readonly 'Content-Digest'?: string;
    readonly 'Signature-Input': string;
    readonly Signature: string;
  };
}

/** From a passport and a request to the headers of DPoP (RFC 9449), byte for byte where the key is Ed25519. */
export interface DpopVector {
  readonly name: string;
  /** Name of the key of passport and proof. */
  readonly holder_key: string;
  readonly auth_site: string;
  /** Compact JWS. */
  readonly passport: string;
  readonly request: SigningVector['request'];
  readonly jti: string;
  readonly issued_at: number;
  /** Of the server, if it gave one. */
  readonly nonce?: string;
  readonly proof_header: string;
  readonly proof_claims: string;
  readonly headers: { readonly Authorization: string; readonly DPoP: string };
}

export const VECTOR_FORMAT = 'proofgate.vectors/v1';
