/** What the benchmark's verifier serves, and requests for it: every one different, every one properly signed. */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signBundle } from '../src/bundle/authoring.ts';
import { loadPackageDefinition, requestSerializer } from '../src/enforcement/ext-authz-grpc/service.ts';
import { passportSha256 } from '../src/protocol/passport.ts';
import type { PublicJwk } from '../src/protocol/public-key.ts';
import {
  newJti,
  type SigningKey,
  signingKeyOf,
  signPassport,
  signTranscript,
} from '../src/protocol/signing.ts';
import type { Transcript } from '../src/protocol/transcript.ts';

const AUTH_SITE = 'bench';
const AUTHORITY = 'api.shop.example';
const AUDIENCE = 'https://api.shop.example';
const CALLER = { issuer: 'https://control.shop.example/sites/bench', subject: 'client:billing' };

export interface BenchWorld {
  readonly authSite: string;
  readonly bundleDirectory: string;
  readonly bundleKeyFile: string;
  /** Encoded CheckRequests, each with a path and a `jti` of its own, good from now on. */
  encodedRequests(count: number): Buffer[];
  /** One transcript with its signature, both base64url, for a bare verification of the same size. */
  signedTranscript(): { readonly jwk: PublicJwk; readonly message: string; readonly signature: string };
}

export async function createBenchWorld(directory: string): Promise<BenchWorld> {
  const bundleSigner = newKey();
  const holder = newKey();
  const bundleDirectory = join(directory, 'bundle');
  const bundleKeyFile = join(directory, 'bundle-key.jwk.json');
  await mkdir(bundleDirectory, { recursive: true });
  await writeFile(bundleKeyFile, JSON.stringify(bundleSigner.publicKey.jwk));
  await signBundle({
    yamlText: bundleYaml(holder),
    fileName: 'bench.yaml',
    signingKeys: [bundleSigner],
    outDirectory: bundleDirectory,
    nowSeconds: nowSeconds(),
  });
  const serialize = requestSerializer(loadPackageDefinition());
  return {
    authSite: AUTH_SITE,
    bundleDirectory,
    bundleKeyFile,
    encodedRequests(count) {
      const passport = passportOf(holder);
      return Array.from({ length: count }, (_, i) => serialize(checkRequest(passport, holder, i)));
    },
    signedTranscript() {
      const { transcript, signature } = signTranscript(
        transcriptOf(passportOf(holder), '/v1/orders/1'),
        holder,
      );
      return { jwk: holder.publicKey.jwk, message: transcript, signature };
    },
  };
}

function newKey(): SigningKey {
  return signingKeyOf(generateKeyPairSync('ed25519').privateKey);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function bundleYaml(holder: SigningKey): string {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
  return JSON.stringify({
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    expires_at: expiresAt,
    skew_seconds: 1,
    single_verifier: true,
    origins: [`https://${AUTHORITY}`],
    clients: [
      {
        client_id: 'billing',
        trust_domain: 'shop.example',
        ...CALLER,
        context: { environment: 'production' },
        grants: [{ resource: 'orders', access: 'read' }],
      },
    ],
    derived_keys: [
      {
        key_id: 'dk_bench',
        client_id: 'billing',
        jwk: holder.publicKey.jwk,
        status: 'active',
        expires_at: expiresAt,
        provenance: {},
      },
    ],
    routes: [
      {
        route_id: 'orders-read',
        method: 'GET',
        path_template: '/v1/orders/{order_id}',
        audience: AUDIENCE,
        freshness_class: 'bounded',
        max_staleness_seconds: 3600,
        resource: 'orders',
      },
    ],
    route_sources: [
      {
        route_id: 'orders-read',
        allowed_sources: [
          {
            issuer: CALLER.issuer,
            trust_domain: 'shop.example',
            subject_exact: CALLER.subject,
            required_key_binding: 'software',
          },
        ],
      },
    ],
  });
}

function passportOf(holder: SigningKey): string {
  const issuedAtSeconds = nowSeconds();
  return signPassport(
    {
      keyId: 'dk_bench',
      ...CALLER,
      trustDomain: 'shop.example',
      audience: AUDIENCE,
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + 300,
      keyBinding: 'software',
      holderJwk: holder.publicKey.jwk,
    },
    holder,
  );
}

function transcriptOf(passport: string, target: string): Transcript {
  const issuedAtSeconds = nowSeconds();
  return {
    authSite: AUTH_SITE,
    keyId: 'dk_bench',
    passportSha256: passportSha256(passport),
    ...CALLER,
    audience: AUDIENCE,
    routeId: 'orders-read',
    method: 'GET',
    scheme: 'https',
    authority: AUTHORITY,
    target,
    jti: newJti(),
    issuedAtSeconds,
    expiresAtSeconds: issuedAtSeconds + 300,
    contentSha256: '-',
    headers: [],
  };
}

/** As Envoy sends it with `encode_raw_headers`. */
function checkRequest(passport: string, holder: SigningKey, index: number) {
  const path = `/v1/orders/${index}`;
  const proof = signTranscript(transcriptOf(passport, path), holder);
  const lines: readonly (readonly [string, string])[] = [
    [':authority', AUTHORITY],
    [':path', path],
    [':method', 'GET'],
    [':scheme', 'https'],
    ['user-agent', 'proofgate/0.2.4'],
    ['accept', '*/*'],
    ['authorization', `Passport ${passport}`],
    ['x-proofgate-transcript', proof.transcript],
    ['x-proofgate-signature', proof.signature],
    ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['x-forwarded-for', '10.0.0.1'],
    ['x-forwarded-proto', 'https'],
    ['x-request-id', randomUUID()],
  ];
  const headers = lines.map(([key, value]) => ({ key, raw_value: Buffer.from(value) }));
  const http = { method: 'GET', path, host: AUTHORITY, scheme: 'https', header_map: { headers } };
  return { attributes: { request: { http } } };
}
