/**
 * Signs requests: each gets a proof for exactly this request, and with transcript-v1 and dpop a passport that identifies the
 * caller. The CLI, `proofgate signer` and the Node SDK sign with it.
 * Source: docs/design/protocol.md "Passport", "Transcript", "HTTP Message Signatures", "DPoP".
 */
import { type BodyDigest, contentSha256 } from '../../protocol/body-binding.ts';
import { ClientError, type ClientErrorCode } from '../../protocol/client-error.ts';
import { DPOP_PROOF_SECONDS } from '../../protocol/dpop-proof.ts';
import { isMethod } from '../../protocol/identifiers.ts';
import {
  DERIVED_KEY_PASSPORT_TTL_SECONDS,
  MAX_PROOF_TTL_SECONDS,
  MAX_TRANSCRIPT_BYTES,
} from '../../protocol/limits.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';
import { newJti, type SigningKey, signTranscript } from '../../protocol/signing.ts';
import type { RouteProfile, SigningProfiles } from '../../protocol/signing-profile.ts';
import type { Transcript } from '../../protocol/transcript.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER_MEMBER,
  PASSPORT_SCHEME,
  type PassportHeader,
} from '../../protocol/wire-names.ts';
import { type ProfileChoice, type SelectedProfile, selectAmongFiles } from '../profiles/select-profile.ts';
import { parseRequestUrl, type RequestUrl } from '../request-url.ts';
import { CredentialHeaders } from './credential-headers.ts';
import { signWithDpop, withoutEarlierDpop } from './dpop.ts';
import { signAsHttpMessage } from './http-message.ts';
import { checkAuthorization, type RequestHeader, selectSignedHeaders } from './request-headers.ts';
import { ServerNonces } from './server-nonces.ts';
import { IdentityInUse, type SigningIdentity } from './signing-identity.ts';
import { credentialsTooLarge, type PassportTimes } from './signing-passport.ts';

export interface RequestToSign {
  /** Case-sensitive. */
  readonly method: string;
  /** URL exactly as it will be sent; its target is signed byte for byte. */
  readonly url: string;
  /** Undefined or empty: no body. */
  readonly body?: Uint8Array | BodyDigest | undefined;
  readonly headers: readonly RequestHeader[];
  /** Further header names to sign; each must be in `headers`. */
  readonly signHeaders?: readonly string[];
  /** Default: the only profile that fits. */
  readonly choice?: ProfileChoice;
  /** `DPoP-Nonce` of the server's last answer; with `dpop` only. Default: the one that {@link RequestSigner.readAnswer} kept. */
  readonly dpopNonce?: string;
}

export interface SignedRequest {
  readonly kind: 'signed';
  readonly method: string;
  readonly url: RequestUrl;
  readonly headers: CredentialHeaders;
  readonly jti: string;
  readonly routeId: string;
  readonly keyId: string;
  readonly signedHeaderNames: readonly string[];
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

export interface SigningFailure {
  readonly kind: 'failed';
  /** `identity_not_ready`: the key or its passports are not loaded yet. */
  readonly code: ClientErrorCode | 'identity_not_ready';
  readonly message: string;
}

export interface FoundProfile extends SelectedProfile {
  readonly kind: 'found';
  readonly url: RequestUrl;
}

export interface SignerOptions {
  readonly nowMs?: () => number;
  /** For tests that need the same bytes each time. */
  readonly newJti?: () => string;
  /** Default: `transcript-v1`. */
  readonly proof?: ProofFormat;
  /** 1 to 300. A proof never outlives its passport. */
  readonly proofTtlSeconds?: number;
  /** 1 to 300; for passports that the key signs itself. */
  readonly passportTtlSeconds?: number;
}

const DEFAULT_PROOF_TTL_SECONDS = 60;

export class RequestSigner {
  readonly #options: Required<SignerOptions>;
  readonly #nonces = new ServerNonces();
  #identity: IdentityInUse | undefined;

  /** @throws ClientError `ttl_out_of_range` */
  constructor(options: SignerOptions = {}) {
    this.#options = {
      nowMs: Date.now,
      newJti,
      proof: 'transcript-v1',
      proofTtlSeconds: DEFAULT_PROOF_TTL_SECONDS,
      passportTtlSeconds: DERIVED_KEY_PASSPORT_TTL_SECONDS,
      ...options,
    };
    requireTtl('proof', this.#options.proofTtlSeconds, MAX_PROOF_TTL_SECONDS);
    requireTtl('passport', this.#options.passportTtlSeconds, DERIVED_KEY_PASSPORT_TTL_SECONDS);
  }

  get identity(): SigningIdentity | undefined {
    return this.#identity?.identity;
  }

  /** @param identity undefined: every request fails with `identity_not_ready` */
  replaceIdentity(identity: SigningIdentity | undefined): void {
    this.#identity = identity && new IdentityInUse(identity);
  }

  /** Finds the request's profile, for callers that must know it before they have the body. */
  profileFor(request: Pick<RequestToSign, 'method' | 'url' | 'choice'>): FoundProfile | SigningFailure {
    return this.#withIdentity(({ identity }) => findProfile(request, identity.files));
  }

  /** Whether the proof of such a request covers its body, so that the body must be known before the request is sent. */
  coversBody({ body }: Pick<RouteProfile, 'body'>): boolean {
    return body === 'bound' && this.#options.proof !== 'dpop';
  }

  /**
   * Keeps the nonce that the answer of a server gives for DPoP proofs.
   * @param origin as in the signed request
   * @returns whether the server denied the request for want of this nonce: sign and send it once more, never twice
   */
  readAnswer(origin: string, status: number, headers: readonly RequestHeader[]): boolean {
    return this.#options.proof === 'dpop' && this.#nonces.learn(origin, status, headers);
  }

  sign(request: RequestToSign): SignedRequest | SigningFailure {
    return this.#withIdentity((inUse) => this.#signAs(inUse, request));
  }

  #withIdentity<T>(use: (identity: IdentityInUse) => T): T | SigningFailure {
    if (this.#identity === undefined) {
      return { kind: 'failed', code: 'identity_not_ready', message: 'there is no key to sign with yet' };
    }
    try {
      return use(this.#identity);
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      return { kind: 'failed', code: error.code, message: error.message };
    }
  }

  #signAs(inUse: IdentityInUse, request: RequestToSign): SignedRequest {
    const found = findProfile(request, inUse.identity.files);
    const { profile, url } = found;
    const isDpop = this.#options.proof === 'dpop';
    const headers = isDpop ? withoutEarlierDpop(request.headers) : request.headers;
    checkAuthorization(headers, profile.passportHeader);
    const issuedAtSeconds = Math.floor(this.#options.nowMs() / 1000);
    const latestSeconds = Math.min(
      issuedAtSeconds + this.#options.proofTtlSeconds,
      keyEndAfter(issuedAtSeconds, inUse.identity),
    );
    const times = { issuedAtSeconds, expiresAtSeconds: latestSeconds };
    const { method } = request;
    return {
      kind: 'signed',
      method,
      url,
      routeId: profile.routeId,
      ...this.#prove(inUse, request, found, times),
    };
  }

  #prove(inUse: IdentityInUse, request: RequestToSign, found: FoundProfile, times: PassportTimes): Proof {
    if (this.#options.proof === 'transcript-v1') return this.#signTranscript(inUse, request, found, times);
    if (this.#options.proof === 'dpop') return this.#signDpop(inUse, request, found, times.issuedAtSeconds);
    const { key, passports } = inUse.identity;
    if (passports !== undefined) {
      throw new ClientError(
        'key_id_missing',
        "a key with a broker's passports has no key_id of its own to sign HTTP messages: use transcript-v1",
      );
    }
    const terms = { jti: this.#options.newJti(), ...times };
    return { ...terms, ...signAsHttpMessage(request, found, key, terms) };
  }

  #signDpop(
    inUse: IdentityInUse,
    request: RequestToSign,
    { profile, profiles, url }: FoundProfile,
    issuedAtSeconds: number,
  ): Proof {
    const passport = inUse.passportFor(profiles, profile, issuedAtSeconds, this.#options);
    const jti = this.#options.newJti();
    const nonce = request.dpopNonce ?? this.#nonces.of(url.origin);
    return {
      headers: signWithDpop(
        request,
        { profile, url, passport, jti, issuedAtSeconds, nonce },
        inUse.identity.key,
      ),
      jti,
      keyId: passport.keyId,
      signedHeaderNames: [],
      issuedAtSeconds,
      expiresAtSeconds: Math.min(issuedAtSeconds + DPOP_PROOF_SECONDS, passport.expiresAtSeconds),
    };
  }

  #signTranscript(
    inUse: IdentityInUse,
    request: RequestToSign,
    { profile, profiles, url }: FoundProfile,
    { expiresAtSeconds: latestSeconds, issuedAtSeconds }: PassportTimes,
  ): Proof {
    const { method } = request;
    const passport = inUse.passportFor(profiles, profile, issuedAtSeconds, this.#options);
    const { authSite, issuer, subject } = profiles.coordinates;
    const transcript: Transcript = {
      authSite,
      keyId: passport.keyId,
      passportSha256: passport.sha256,
      issuer,
      subject,
      audience: profile.audience,
      routeId: profile.routeId,
      method,
      scheme: url.scheme,
      authority: url.authority,
      target: url.target,
      jti: this.#options.newJti(),
      issuedAtSeconds,
      expiresAtSeconds: Math.min(latestSeconds, passport.expiresAtSeconds),
      contentSha256: contentSha256(method, profile.body, request.body ?? NO_BODY),
      headers: selectSignedHeaders(request.headers, profile, request.signHeaders ?? []),
    };
    return {
      headers: signedHeaders(passport.jws, profile.passportHeader, transcript, inUse.identity.key),
      jti: transcript.jti,
      keyId: passport.keyId,
      signedHeaderNames: transcript.headers.map(({ name }) => name),
      issuedAtSeconds,
      expiresAtSeconds: transcript.expiresAtSeconds,
    };
  }
}

type Proof = Omit<SignedRequest, 'kind' | 'method' | 'url' | 'routeId'>;

/** Infinite for a key that has expired, because the verifier reports that. */
function keyEndAfter(seconds: number, { expiresAtMs = Number.POSITIVE_INFINITY }: SigningIdentity): number {
  const endSeconds = Math.floor(expiresAtMs / 1000);
  return endSeconds > seconds ? endSeconds : Number.POSITIVE_INFINITY;
}

const NO_BODY = new Uint8Array(0);

/** @throws ClientError as `selectAmongFiles`, or `method_invalid`, `url_invalid`, `url_not_canonical` */
export function findProfile(
  { choice = { kind: 'only_fit' }, method, url: text }: Pick<RequestToSign, 'method' | 'url' | 'choice'>,
  files: readonly SigningProfiles[],
): FoundProfile {
  if (!isMethod(method)) throw new ClientError('method_invalid', 'the method is not an HTTP method');
  const url = parseRequestUrl(text);
  return { kind: 'found', url, ...selectAmongFiles(files, method, url, choice) };
}

function signedHeaders(
  jws: string,
  passportHeader: PassportHeader,
  transcript: Transcript,
  holderKey: SigningKey,
): CredentialHeaders {
  const proof = signTranscript(transcript, holderKey);
  if (proof.transcript.length > MAX_TRANSCRIPT_BYTES) throw credentialsTooLarge();
  return new CredentialHeaders([
    passportHeader === AUTHORIZATION_HEADER
      ? { name: 'Authorization', value: `${PASSPORT_SCHEME} ${jws}` }
      : { name: PASSPORT_HEADER_MEMBER, value: jws },
    { name: 'X-Proofgate-Transcript', value: proof.transcript },
    { name: 'X-Proofgate-Signature', value: proof.signature },
  ]);
}

function requireTtl(what: string, seconds: number, maxSeconds: number): void {
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= maxSeconds) return;
  throw new ClientError('ttl_out_of_range', `the ${what} must live 1s to ${maxSeconds}s, in whole seconds`);
}
