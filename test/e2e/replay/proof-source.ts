/** A site of one route and a client for each holder, and proofs of its callers: each proof is different and properly signed. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { passportSha256 } from '../../../src/protocol/passport.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import {
  generateSigningKey,
  newJti,
  type SigningKey,
  signPassport,
  signTranscript,
} from '../../../src/protocol/signing.ts';
import { NOT_BOUND } from '../../../src/protocol/transcript.ts';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { replayIdentifier } from '../../../src/verifier/replay/identifier.ts';
import { encodeCheckRequest } from '../../support/harness/check-client.ts';

export const AUTH_SITE = 'replay-e2e';
/** The least that a bundle may have, so that fences are short. */
export const SKEW_SECONDS = 1;
const AUTHORITY = 'api.shop.example';
const AUDIENCE = 'https://api.shop.example';
const ISSUER = 'https://control.shop.example/sites/replay-e2e';
/** Longest that a proof may live: whatever was consumed in a campaign is good until its end. */
const LONGEST_LIFE_SECONDS = 300;

/** One proof, in both forms in which it is presented. */
export interface Proof {
  readonly jti: string;
  /** Under which a store remembers it. */
  readonly identifier: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  /** A CheckRequest, as Envoy sends it with `encode_raw_headers`. */
  readonly checkRequest: Buffer;
  readonly request: WireRequest;
}

export interface ProofTimes {
  /** Default: now. */
  readonly issuedAtSeconds?: number;
  /** Default: {@link LONGEST_LIFE_SECONDS}. */
  readonly lifeSeconds?: number;
}

export class ProofSource {
  readonly directory: string;
  readonly bundleDirectory: string;
  readonly bundleKeyFile: string;
  readonly #holders: readonly Holder[];
  #proofs = 0;

  private constructor(directory: string, holders: readonly Holder[]) {
    this.directory = directory;
    this.bundleDirectory = join(directory, 'bundle');
    this.bundleKeyFile = join(directory, 'bundle-key.jwk.json');
    this.#holders = holders;
  }

  static async create({ singleVerifier = false, holderCount = 1 } = {}): Promise<ProofSource> {
    const directory = await mkdtemp(join(tmpdir(), 'pg-replay-'));
    const holders = Array.from({ length: holderCount }, (_, at) => new Holder(at));
    const source = new ProofSource(directory, holders);
    const bundleSigner = newKey();
    await mkdir(source.bundleDirectory);
    await writeFile(source.bundleKeyFile, JSON.stringify(bundleSigner.publicKey.jwk));
    await signBundle({
      yamlText: JSON.stringify(bundleContent(holders, singleVerifier)),
      fileName: 'replay.yaml',
      signingKeys: [bundleSigner],
      outDirectory: source.bundleDirectory,
      // Also valid for a verifier whose clock was set back.
      nowSeconds: systemSeconds() - 1_800,
    });
    return source;
  }

  /** By each holder in turn. */
  mint(times: ProofTimes = {}): Proof {
    const { issuedAtSeconds = systemSeconds(), lifeSeconds = LONGEST_LIFE_SECONDS } = times;
    const expiresAtSeconds = issuedAtSeconds + lifeSeconds;
    this.#proofs += 1;
    const target = `/v1/orders/${this.#proofs}`;
    const holder = this.#holders[this.#proofs % this.#holders.length];
    if (holder === undefined) throw new Error('there is no holder');
    const passport = holder.passportOf(issuedAtSeconds);
    const jti = newJti();
    const proof = signTranscript(
      {
        authSite: AUTH_SITE,
        keyId: holder.keyId,
        passportSha256: passportSha256(passport),
        issuer: ISSUER,
        subject: holder.subject,
        audience: AUDIENCE,
        routeId: 'orders-read',
        method: 'GET',
        scheme: 'http',
        authority: AUTHORITY,
        target,
        jti,
        issuedAtSeconds,
        expiresAtSeconds,
        contentSha256: NOT_BOUND,
        headers: [],
      },
      holder.key,
    );
    const headers: readonly HeaderLine[] = [
      ['authorization', `Passport ${passport}`],
      ['x-proofgate-transcript', proof.transcript],
      ['x-proofgate-signature', proof.signature],
    ];
    const request = { method: 'GET', target, authority: AUTHORITY, headers };
    const identifier = replayIdentifier(AUTH_SITE, holder.key.publicKey.thumbprint, jti);
    return { jti, identifier, issuedAtSeconds, expiresAtSeconds, request, checkRequest: encoded(request) };
  }

  remove(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

/** A derived key with a client of its own: holders and subjects have quotas. */
class Holder {
  readonly keyId: string;
  readonly clientId: string;
  readonly subject: string;
  readonly key = newKey();
  #passport = { issuedAtSeconds: 0, jws: '' };

  constructor(at: number) {
    this.keyId = `dk_replay_${at}`;
    this.clientId = `billing-${at}`;
    this.subject = `client:billing-${at}`;
  }

  /** One for all proofs of a second: verifiers know passports again, as they do in use. */
  passportOf(issuedAtSeconds: number): string {
    if (this.#passport.issuedAtSeconds === issuedAtSeconds) return this.#passport.jws;
    const jws = signPassport(
      {
        keyId: this.keyId,
        issuer: ISSUER,
        subject: this.subject,
        trustDomain: 'shop.example',
        audience: AUDIENCE,
        issuedAtSeconds,
        expiresAtSeconds: issuedAtSeconds + LONGEST_LIFE_SECONDS,
        keyBinding: 'software',
        holderJwk: this.key.publicKey.jwk,
      },
      this.key,
    );
    this.#passport = { issuedAtSeconds, jws };
    return jws;
  }
}

export function systemSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function newKey(): SigningKey {
  return generateSigningKey('Ed25519');
}

function encoded({ method, target, authority, headers = [] }: WireRequest): Buffer {
  const lines: readonly HeaderLine[] = [
    [':authority', authority],
    [':path', target],
    [':method', method],
    [':scheme', 'http'],
    ...headers,
  ];
  const header_map = { headers: lines.map(([key, value]) => ({ key, raw_value: Buffer.from(value) })) };
  const http = { method, path: target, host: authority, scheme: 'http', header_map };
  return encodeCheckRequest({ attributes: { request: { http } } });
}

function bundleContent(holders: readonly Holder[], singleVerifier: boolean): object {
  const expires_at = formatTime(systemSeconds() + 86_400);
  return {
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    expires_at,
    skew_seconds: SKEW_SECONDS,
    ...(singleVerifier ? { single_verifier: true } : {}),
    origins: [`http://${AUTHORITY}`],
    clients: holders.map(({ clientId, subject }) => ({
      client_id: clientId,
      trust_domain: 'shop.example',
      issuer: ISSUER,
      subject,
      context: {},
      grants: [{ resource: 'orders', access: 'read' }],
    })),
    derived_keys: holders.map(({ clientId, key, keyId }) => ({
      key_id: keyId,
      client_id: clientId,
      jwk: key.publicKey.jwk,
      status: 'active',
      expires_at,
      provenance: {},
    })),
    routes: [
      {
        route_id: 'orders-read',
        method: 'GET',
        path_template: '/v1/orders/{order_id}',
        audience: AUDIENCE,
        freshness_class: 'bounded',
        max_staleness_seconds: 86_400,
        resource: 'orders',
      },
    ],
    route_sources: [
      {
        route_id: 'orders-read',
        allowed_sources: [
          {
            issuer: ISSUER,
            trust_domain: 'shop.example',
            subject_prefix: 'client:',
            required_key_binding: 'software',
          },
        ],
      },
    ],
  };
}
