/** Signs requests with the npm package http-message-signatures, as a caller without our SDK does. */
import { hash, randomBytes } from 'node:crypto';
import { createSigner, httpbis } from 'http-message-signatures';
import type { SigningKey } from '../../../src/protocol/signing.ts';

export interface PlainRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
}

export interface HttpSigningOptions {
  readonly key: SigningKey;
  readonly keyId: string;
  readonly authSite: string;
  readonly createdSeconds: number;
  /** Default 60. */
  readonly ttlSeconds?: number;
  /** Default: method, target, content-digest and content-type as far as the request has them. */
  readonly fields?: readonly string[];
  readonly nonce?: string;
  readonly tag?: string;
  readonly alg?: string;
  /** Names of parameters; default: those that the site needs. */
  readonly params?: readonly string[];
  readonly label?: string;
}

export function newNonce(): string {
  return randomBytes(16).toString('base64url');
}

/** The request's headers with `Content-Digest`, `Signature-Input` and `Signature`, names in lower case. */
export async function signHttp(
  { body, headers, method, url }: PlainRequest,
  options: HttpSigningOptions,
): Promise<Record<string, string>> {
  const digest = body && `sha-256=:${hash('sha256', body, 'base64')}:`;
  const sent = { ...(digest === undefined ? {} : { 'content-digest': digest }), ...headers };
  const usual = ['content-digest', 'content-type'].filter((name) => Object.hasOwn(sent, name));
  const { key, keyId, createdSeconds, ttlSeconds = 60 } = options;
  const isEd25519 = key.publicKey.algorithm === 'Ed25519';
  const signed = await httpbis.signMessage(
    {
      key: createSigner(key.privateKey, isEd25519 ? 'ed25519' : 'ecdsa-p256-sha256', keyId),
      name: options.label ?? 'sig',
      fields: [...(options.fields ?? ['@method', '@target-uri', ...usual])],
      params: [...(options.params ?? ['created', 'expires', 'nonce', 'keyid', 'tag'])],
      paramValues: {
        created: new Date(createdSeconds * 1000),
        expires: new Date((createdSeconds + ttlSeconds) * 1000),
        nonce: options.nonce ?? newNonce(),
        keyid: keyId,
        tag: options.tag ?? `proofgate/${options.authSite}`,
        ...(options.alg === undefined ? {} : { alg: options.alg }),
      },
    },
    { method, url, headers: sent },
  );
  const lines = Object.entries(signed.headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return Object.fromEntries(lines);
}
