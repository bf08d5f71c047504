/** openid-client as a caller's library: it makes the proofs, and repeats a request once for a nonce. */
import type { webcrypto } from 'node:crypto';
import {
  allowInsecureRequests,
  Configuration,
  customFetch,
  fetchProtectedResource,
  getDPoPHandle,
} from 'openid-client';
import { importPublicJwk } from '../../../src/protocol/import-public-key.ts';
import type { HeaderLine, WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { READ, type Requests, url } from './dpop-requests.ts';

/** Calls with openid-client, and a passport for its key. */
export async function callWithLibrary(
  { attested, passportOf }: Requests,
  client: WireClient,
  algorithm: 'Ed25519' | 'ES256',
  path = '/v1/dpop/4711',
): Promise<number> {
  const config = new Configuration({ issuer: 'https://issuer.example' }, 'client');
  allowInsecureRequests(config);
  config[customFetch] = async (target, { headers, method }) => {
    const lines = Object.entries(headers).map(([key, value]): HeaderLine => [key.toLowerCase(), value]);
    const request = { method, target: new URL(target).pathname, authority: AUTHORITY, headers: lines };
    const answer = await client.send(request);
    return new Response(answer.body, {
      status: answer.status,
      headers: answer.headers.map(([key, value]): [string, string] => [key, value]),
    });
  };
  const parameters = algorithm === 'ES256' ? { name: 'ECDSA', namedCurve: 'P-256' } : { name: 'Ed25519' };
  const keyPair = (await crypto.subtle.generateKey(parameters, false, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair;
  const holder = importPublicJwk(publicMembers(await crypto.subtle.exportKey('jwk', keyPair.publicKey)));
  if (holder === undefined) throw new Error('no public key');
  const token = passportOf(attested(), READ.audience, holder.jwk);
  const options = { DPoP: getDPoPHandle(config, keyPair) };
  const target = new URL(url(path));
  const { status } = await fetchProtectedResource(config, token, target, 'GET', null, undefined, options);
  return status;
}

const publicMembers = ({ crv, kty, x, y }: webcrypto.JsonWebKey) =>
  y === undefined ? { kty, crv, x } : { kty, crv, x, y };
