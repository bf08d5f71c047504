/** Good requests with HTTP message signatures and with DPoP proofs, each for a route that accepts that format alone. */
import { formatSignatureBase } from '../../src/protocol/http-signature.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import { newJti } from '../../src/protocol/signing.ts';
import { signDpop } from '../../test/support/protocol/dpop-signer.ts';
import { encodeRequest, passportOf } from './requests.ts';
import { AUTH_SITE, AUTHORITY, type BenchCaller, type BenchSite, type ExtraRoute } from './site.ts';

type Format = 'http' | 'dpop';

const PATHS: { readonly [F in Format]: string } = { http: '/v1/http', dpop: '/v1/dpop' };

/** Of the first caller's client. */
export const FORMAT_ROUTES: readonly ExtraRoute[] = [
  {
    routeId: 'http',
    path: `${PATHS.http}/{order_id}`,
    more: { accepted_proofs: ['http-message-signatures'] },
  },
  {
    routeId: 'dpop',
    path: `${PATHS.dpop}/{order_id}`,
    more: { accepted_proofs: ['dpop'], unbound: ['route', 'site'] },
  },
];

type HeaderLine = readonly [name: string, value: string];

export function requestsOfFormat(format: Format, { callers }: BenchSite, count: number): Buffer[] {
  const [caller] = callers;
  if (caller === undefined) throw new Error('a site without callers');
  const sign = format === 'http' ? signatureLines : dpopLines;
  return Array.from({ length: count }, (_, index) => {
    const path = `${PATHS[format]}/${index}`;
    const pseudo: readonly HeaderLine[] = [
      [':authority', AUTHORITY],
      [':path', path],
      [':method', 'GET'],
      [':scheme', 'https'],
    ];
    return encodeRequest({ path, lines: [...pseudo, ...sign(caller, path), ['x-forwarded-proto', 'https']] });
  });
}

function signatureLines({ key, keyId }: BenchCaller, path: string): readonly HeaderLine[] {
  const created = Math.floor(Date.now() / 1000);
  const params = `("@method" "@target-uri");created=${created};expires=${created + 60};nonce="${newJti()}";keyid="${keyId}";tag="proofgate/${AUTH_SITE}"`;
  const lines = [
    ['@method', 'GET'],
    ['@target-uri', `https://${AUTHORITY}${path}`],
  ] as const;
  const base = Buffer.from(formatSignatureBase(lines, params));
  const signature = signMessage(key.publicKey.algorithm, key.privateKey, base).toString('base64');
  return [
    ['signature-input', `sig=${params}`],
    ['signature', `sig=:${signature}:`],
  ];
}

function dpopLines(caller: BenchCaller, path: string): readonly HeaderLine[] {
  const token = passportOf(caller, undefined);
  const url = `https://${AUTHORITY}${path}`;
  const issuedAtSeconds = Math.floor(Date.now() / 1000);
  const proof = signDpop({ key: caller.key, method: 'GET', url, token, issuedAtSeconds });
  return [
    ['authorization', `DPoP ${token}`],
    ['dpop', proof],
  ];
}
