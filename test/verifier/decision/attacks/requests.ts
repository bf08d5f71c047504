/** The site that is attacked, and good requests with fixed keys and identifiers: the same attack is always the same bytes. */
import { formatTime } from '../../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../../src/protocol/signing.ts';
import { NOW_SECONDS, ORIGIN, TRUST_DOMAIN } from '../../../support/fixtures/bundle-content.ts';
import { type RequestEdits, signRequest } from '../../../support/fixtures/signed-request.ts';
import {
  compileSite,
  MAX_STALENESS_SECONDS,
  type RouteId,
  type SiteContent,
  siteContent,
} from '../../../support/fixtures/snapshot.ts';
import { TEST_SITE_KEYS } from '../../../support/fixtures/test-keys.ts';
import { type IssuerSigner, makeSigner, signCompact } from '../../../support/fixtures/token-signer.ts';
import { ed25519KeyOfSeed } from '../../../support/protocol/fixtures.ts';
import type { Sent } from './attack.ts';

export const keys = TEST_SITE_KEYS;
export const stranger = ed25519KeyOfSeed('17'.repeat(32));
/** A `jti` in each format, and a nonce of HTTP message signatures. */
export const FIXED_JTI = Buffer.from('0123456789abcdef').toString('base64url');

/** Ed25519 and RS256: their signatures are the same each time. */
export const server = makeSigner('Ed25519');
export const otherServer = makeSigner('RS256');
export const TOKEN_ISSUER = 'https://login.shop.example/realms/shop';
export const OTHER_TOKEN_ISSUER = 'https://other-login.shop.example';

type IssuerContent = NonNullable<SiteContent['oauth_issuers']>[number];

function serverContent(issuer: string, { algorithm, kid, publicKey }: IssuerSigner): IssuerContent {
  const jwk = publicKey.export({ format: 'jwk' }) as IssuerContent['keys'][number]['jwk'];
  return { issuer, trust_domain: TRUST_DOMAIN, keys: [{ kid, alg: algorithm, jwk }] };
}

/** Routes that take every format, except `future`, `bearer` and realtime ones. */
export function attackedContent(): SiteContent {
  const content = siteContent(keys);
  content.oauth_issuers = [
    {
      ...serverContent(TOKEN_ISSUER, server),
      context_claims: ['team'],
      not_before: formatTime(NOW_SECONDS - 1000),
    },
    serverContent(OTHER_TOKEN_ISSUER, otherServer),
  ];
  for (const route of content.routes) {
    if (route.route_id === 'prices') {
      Object.assign(route, { freshness_class: 'bounded', max_staleness_seconds: MAX_STALENESS_SECONDS });
    }
    if (route.route_id === 'orders-cancel') route.dpop_nonce = 'required';
    if (route.passport_header !== undefined || route.freshness_class !== 'bounded') continue;
    route.accepted_proofs = ['transcript-v1', 'http-message-signatures', 'dpop'];
    route.unbound = ['route', 'site', ...(route.signed_headers === undefined ? [] : (['headers'] as const))];
  }
  for (const { allowed_sources, route_id } of content.route_sources) {
    if (route_id === 'attested') continue;
    allowed_sources.push({
      ...{ issuer: TOKEN_ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' },
      subject_exact: 'sub:orders',
    });
  }
  return content;
}

export const attackedSite = () => compileSite(attackedContent());

interface PassportChanges {
  readonly passportKey?: SigningKey;
  readonly holder?: SigningKey;
  readonly kid?: string;
  readonly header?: object;
  readonly claims?: object;
}

type PassportCaller = 'billing' | 'reporting' | 'revoked' | 'broker';

export function passportOf(caller: PassportCaller, route: RouteId, changes: PassportChanges = {}): string {
  const { claims, header, holder, kid, passportKey } = changes;
  return signRequest(
    keys,
    { caller, route, ...(holder && { holder }) },
    {
      ...(passportKey && { passportKey }),
      joseHeader: (members) => void Object.assign(members, kid === undefined ? {} : { kid }, header),
      claims: (draft) => void Object.assign(draft, { jti: 'passport-with-a-fixed-jti', ...claims }),
    },
  ).jws;
}

export function transcriptRequest(
  route: RouteId,
  edits: RequestEdits = {},
  caller: PassportCaller = 'billing',
): Sent {
  const { wire } = signRequest(
    keys,
    { caller, route },
    {
      ...edits,
      claims: (draft) => {
        draft.jti = 'passport-with-a-fixed-jti';
        edits.claims?.(draft);
      },
      transcript: (draft) => {
        draft.jti = FIXED_JTI;
        edits.transcript?.(draft);
      },
    },
  );
  const { headers, ...sent } = wire;
  return { ...sent, lines: headers };
}

/** Of the authorization server, bound to the key of `billing`. */
export function accessToken(claims: object = {}, header: object = {}, signer: IssuerSigner = server): string {
  return signCompact(
    { typ: 'at+jwt', alg: signer.algorithm, kid: signer.kid, ...header },
    {
      ...{
        iss: TOKEN_ISSUER,
        sub: 'orders',
        aud: ORIGIN,
        iat: NOW_SECONDS,
        exp: NOW_SECONDS + 300,
        jti: 't-1',
      },
      ...{ client_id: 'orders', cnf: { jkt: keys.billing.publicKey.thumbprint }, ...claims },
    },
    signer,
  );
}
