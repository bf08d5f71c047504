/** Routes that accept proofs of several formats, and the authorization server whose callers may call them. */
import { makeSigner, signCompact } from '../fixtures/token-signer.ts';
import { ROUTES, type SiteRoute } from './routes.ts';
import { nowSeconds, TRUST_DOMAIN } from './site.ts';

const EVERY = ['transcript-v1', 'http-message-signatures', 'dpop'] as const;

export const STANDARD_ROUTES = {
  read: {
    ...ROUTES.readOrder,
    route_id: 'standard-read',
    path_template: '/v1/standard/{order_id}',
    accepted_proofs: EVERY,
    unbound: ['route', 'site'],
  },
  /** A DPoP proof allows no body here. */
  write: {
    ...ROUTES.createOrder,
    route_id: 'standard-write',
    path_template: '/v1/standard',
    accepted_proofs: EVERY,
    unbound: ['route', 'site'],
  },
  /** A DPoP proof allows any query and body here. */
  loose: {
    ...ROUTES.createOrder,
    route_id: 'standard-loose',
    path_template: '/v1/loose',
    accepted_proofs: ['dpop'],
    unbound: ['route', 'site', 'query', 'body'],
  },
  nonced: {
    ...ROUTES.readOrder,
    route_id: 'standard-nonced',
    path_template: '/v1/nonced/{order_id}',
    accepted_proofs: ['dpop'],
    unbound: ['route', 'site'],
    dpop_nonce: 'required',
  },
  /** `Authorization` belongs to the application. */
  bearer: {
    ...ROUTES.bearer,
    route_id: 'standard-bearer',
    path_template: '/v1/standard-bearer',
    accepted_proofs: ['transcript-v1', 'http-message-signatures'],
  },
  forwarded: {
    ...ROUTES.whoAmI,
    route_id: 'standard-whoami',
    path_template: '/v1/standard-whoami',
    accepted_proofs: EVERY,
    unbound: ['route', 'site'],
  },
} as const satisfies Record<string, SiteRoute>;

export const TOKEN_ISSUER = 'https://login.shop.example/realms/shop';
const signer = makeSigner('ES256');
export const TOKEN_ISSUERS = [
  {
    issuer: TOKEN_ISSUER,
    trust_domain: TRUST_DOMAIN,
    keys: [{ kid: signer.kid, alg: signer.algorithm, jwk: signer.publicKey.export({ format: 'jwk' }) }],
  },
];
export const TOKEN_SUBJECT = 'sub:orders';

/** @param thumbprint of the key that the token is bound to */
export function accessToken(thumbprint: string, claims: object = {}, header: object = {}): string {
  const iat = nowSeconds();
  return signCompact(
    { typ: 'at+jwt', alg: signer.algorithm, kid: signer.kid, ...header },
    {
      ...{ iss: TOKEN_ISSUER, sub: 'orders', aud: ROUTES.readOrder.audience, iat, exp: iat + 300 },
      ...{ client_id: 'orders', cnf: { jkt: thumbprint }, ...claims },
    },
    signer,
  );
}
