/** Good requests with HTTP message signatures and with DPoP proofs, each for a route that accepts that format alone. */
import { formatSignatureBase } from '../../src/protocol/http-signature.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import { newJti } from '../../src/protocol/signing.ts';
import { signDpop } from '../../test/support/protocol/dpop-signer.ts';
import { encodeRequest, linesOfGateway, passportOf } from './requests.ts';
import {
  ANY_SUBJECT,
  AUTH_SITE,
  AUTHORITY,
  type BenchCaller,
  type BenchSite,
  type ExtraRoute,
} from './site.ts';

/** `dpop_first`: each request has a passport of its own, which the verifier has not seen. */
export type OtherFormat = 'http' | 'dpop' | 'dpop_first';

const PATHS = { http: '/v1/http', dpop: '/v1/dpop', dpop_first: '/v1/dpop' } as const;

/** For every caller. */
export const FORMAT_ROUTES: readonly ExtraRoute[] = [
  {
    routeId: 'http',
    path: `${PATHS.http}/{order_id}`,
    subject: ANY_SUBJECT,
    more: { accepted_proofs: ['http-message-signatures'] },
  },
  {
    routeId: 'dpop',
    path: `${PATHS.dpop}/{order_id}`,
    subject: ANY_SUBJECT,
    more: { accepted_proofs: ['dpop'], unbound: ['route', 'site'] },
  },
];

type HeaderLine = readonly [name: string, value: string];

/** Spread over callers, as those with transcripts are. */
export function requestsOfFormat(format: OtherFormat, { callers }: BenchSite, count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => {
    const caller = callers[index % callers.length];
    if (caller === undefined) throw new Error('a site without callers');
    const path = `${PATHS[format]}/${index}`;
    const pseudo: readonly HeaderLine[] = [
      [':authority', AUTHORITY],
      [':path', path],
      [':method', 'GET'],
      [':scheme', 'https'],
      ['user-agent', 'proofgate/0.4.0'],
      ['accept', '*/*'],
    ];
    const proof = format === 'http' ? signatureLines(caller, path) : dpopLines(caller, path, format);
    return encodeRequest({ path, lines: [...pseudo, ...proof, ...linesOfGateway()] });
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

function dpopLines(caller: BenchCaller, path: string, format: 'dpop' | 'dpop_first'): readonly HeaderLine[] {
  const token = passportOf(caller, format === 'dpop_first' ? 'new' : undefined);
  const url = `https://${AUTHORITY}${path}`;
  const issuedAtSeconds = Math.floor(Date.now() / 1000);
  const proof = signDpop({ key: caller.key, method: 'GET', url, token, issuedAtSeconds });
  return [
    ['authorization', `DPoP ${token}`],
    ['dpop', proof],
  ];
}
