/** About sixty attacks on requests with DPoP proofs, each with the answer that it must get. */
import { newJti } from '../../../src/protocol/signing.ts';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { attestedCaller, derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, IPV6_AUTHORITY } from '../../support/site/routes.ts';
import { newHolder, nowSeconds, type Site } from '../../support/site/site.ts';
import {
  changed,
  EITHER_TARGET,
  type Plan,
  type Requests,
  type Sent,
  url,
  withLine,
  without,
  withPart,
} from './dpop-requests.ts';

const PROOF = '401 invalid_request_proof/';
const BINDING = '403 request_binding_mismatch/';
const claims = (members: Readonly<Record<string, unknown>>): Plan => ({ proof: { claims: members } });
const header = (members: Readonly<Record<string, unknown>>): Plan => ({ proof: { header: members } });
const edit = (part: string, from: string | RegExp, to: string) =>
  Buffer.from(Buffer.from(part, 'base64url').toString().replace(from, to)).toString('base64url');

type Attack = readonly [name: string, make: () => Sent | Promise<Sent>, answer: string];

export function attacksOf(
  site: Site,
  { billing, dpopRequest, httpSignature, passportOf, transcriptRequest }: Requests,
): readonly Attack[] {
  const stranger = () => newHolder(site.secrets);
  return [
    ['the token as a bearer', () => dpopRequest({ scheme: 'Bearer' }), `${PROOF}authorization_scheme`],
    [
      'the token as a bearer, without a proof',
      () => without(dpopRequest({ scheme: 'Bearer' }), 'dpop'),
      `${PROOF}authorization_scheme`,
    ],
    ['the token as a passport', () => dpopRequest({ scheme: 'Passport' }), `${PROOF}authorization_scheme`],
    [
      'the token without a scheme',
      () => changed(dpopRequest(), 'authorization', (value) => value.slice(5)),
      `${PROOF}authorization_scheme`,
    ],
    ['no token', () => without(dpopRequest(), 'authorization'), `${PROOF}authorization_missing`],
    ['no proof', () => without(dpopRequest(), 'dpop'), `${PROOF}proof_missing`],
    ['an empty proof', () => changed(dpopRequest(), 'dpop', () => ''), `${PROOF}proof_malformed`],
    [
      'the same proof twice',
      () => withLine(dpopRequest(), 'dpop', String(headerValues(dpopRequest().headers, 'dpop')[0])),
      `${PROOF}proof_malformed`,
    ],
    [
      'two proofs in one line',
      () => changed(dpopRequest(), 'dpop', (value) => `${value}, ${value}`),
      `${PROOF}proof_malformed`,
    ],
    [
      'two tokens',
      () => withLine(dpopRequest(), 'authorization', `DPoP ${passportOf()}`),
      `${PROOF}passport_malformed`,
    ],
    [
      'a bearer beside the token',
      () => withLine(dpopRequest(), 'authorization', 'Bearer x'),
      `${PROOF}passport_malformed`,
    ],
    ["another key's proof", () => dpopRequest({ proof: { key: stranger() } }), `${PROOF}proof_key`],
    [
      "another caller's proof",
      () => dpopRequest({ proof: { key: site.derivedKeys.dk_plain } }),
      `${PROOF}proof_key`,
    ],
    [
      "another key's signature",
      () => dpopRequest({ proof: { signer: stranger() } }),
      `${PROOF}proof_signature`,
    ],
    ['a swapped key', () => dpopRequest(header({ jwk: stranger().publicKey.jwk })), `${PROOF}proof_key`],
    [
      'a swapped key after signing',
      () =>
        changed(dpopRequest(), 'dpop', (jws) =>
          withPart(jws, 0, (part) => edit(part, /"x":"[^"]+"/, `"x":"${stranger().publicKey.jwk.x}"`)),
        ),
      `${PROOF}proof_key`,
    ],
    [
      'a token for the attacker with the victim’s proof',
      () => dpopRequest({ token: passportOf({ ...attestedCaller(site), holder: stranger() }) }),
      `${PROOF}proof_key`,
    ],
    [
      'an address of keys',
      () => dpopRequest(header({ jku: 'https://evil.example/keys' })),
      `${PROOF}proof_malformed`,
    ],
    [
      'an address of certificates',
      () => dpopRequest(header({ x5u: 'https://evil.example/c' })),
      `${PROOF}proof_malformed`,
    ],
    ['certificates', () => dpopRequest(header({ x5c: ['MIIB'] })), `${PROOF}proof_malformed`],
    ['a kid', () => dpopRequest(header({ kid: 'dk_billing' })), `${PROOF}proof_malformed`],
    ['critical members', () => dpopRequest(header({ crit: ['b64'], b64: false })), `${PROOF}proof_malformed`],
    [
      'a private key',
      () => dpopRequest(header({ jwk: { ...billing().holder.publicKey.jwk, d: 'A'.repeat(43) } })),
      `${PROOF}proof_malformed`,
    ],
    ['no algorithm', () => dpopRequest(header({ alg: 'none' })), `${PROOF}proof_malformed`],
    ['the algorithm of another key', () => dpopRequest(header({ alg: 'ES256' })), `${PROOF}proof_malformed`],
    [
      'a shared secret',
      () => dpopRequest(header({ alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } })),
      `${PROOF}proof_malformed`,
    ],
    ['another type', () => dpopRequest(header({ typ: 'JWT' })), `${PROOF}proof_malformed`],
    [
      'no signature',
      () => changed(dpopRequest(), 'dpop', (jws) => withPart(jws, 2, () => '')),
      `${PROOF}proof_malformed`,
    ],
    [
      'a zero signature',
      () => changed(dpopRequest(), 'dpop', (jws) => withPart(jws, 2, () => 'A'.repeat(86))),
      `${PROOF}proof_signature`,
    ],
    [
      'changed claims',
      () =>
        changed(dpopRequest(), 'dpop', (jws) =>
          withPart(jws, 1, (part) => edit(part, /"jti":"[^"]+"/, `"jti":"${newJti()}"`)),
        ),
      `${PROOF}proof_signature`,
    ],
    ['a wrong ath', () => dpopRequest({ proof: { token: passportOf() } }), `${BINDING}ath`],
    ['no ath', () => dpopRequest(claims({ ath: undefined })), `${PROOF}proof_malformed`],
    ['a wrong htm', () => dpopRequest({ proof: { method: 'POST' } }), `${BINDING}method`],
    ['a wrong htu', () => dpopRequest({ proof: { url: url('/v1/dpop/4712') } }), `${BINDING}target`],
    [
      'an htu of another host',
      () => dpopRequest({ proof: { url: 'http://evil.example/v1/dpop/4711' } }),
      `${BINDING}authority`,
    ],
    [
      'an htu of another scheme',
      () => dpopRequest({ proof: { url: `https://${AUTHORITY}/v1/dpop/4711` } }),
      `${BINDING}scheme`,
    ],
    [
      'an htu with user name',
      () => dpopRequest({ proof: { url: `http://${AUTHORITY}@evil.example/v1/dpop/4711` } }),
      `${PROOF}proof_malformed`,
    ],
    [
      'an htu with dots',
      () => dpopRequest({ proof: { url: url('/v1/x/../dpop/4711') } }),
      `${BINDING}target`,
    ],
    [
      'an htu with escapes',
      () => dpopRequest({ proof: { url: url('/v1/dpop/%34711') } }),
      `${BINDING}target`,
    ],
    [
      'an htu with a query',
      () => dpopRequest({ proof: { url: url('/v1/dpop/4711?a=1') } }),
      `${PROOF}proof_malformed`,
    ],
    ['another path', () => ({ ...dpopRequest(), target: '/v1/dpop/4712' }), `${BINDING}target`],
    ['another origin', () => ({ ...dpopRequest(), authority: IPV6_AUTHORITY }), `${BINDING}authority`],
    ['another route', () => ({ ...dpopRequest(), ...EITHER_TARGET }), `${BINDING}target`],
    ['a query', () => ({ ...dpopRequest(), target: '/v1/dpop/4711?admin=1' }), `${BINDING}query`],
    ['an empty query', () => ({ ...dpopRequest(), target: '/v1/dpop/4711?' }), `${BINDING}query`],
    [
      'a body',
      () => dpopRequest({ method: 'POST', target: '/v1/dpop-empty', body: Buffer.from('x') }),
      `${BINDING}body`,
    ],
    [
      'an old proof',
      () => dpopRequest({ proof: { issuedAtSeconds: nowSeconds() - 70 } }),
      `${PROOF}proof_expired`,
    ],
    [
      'a proof of the future',
      () => dpopRequest({ proof: { issuedAtSeconds: nowSeconds() + 30 } }),
      `${PROOF}proof_not_yet_valid`,
    ],
    [
      'a proof with its own end',
      () => dpopRequest(claims({ exp: nowSeconds() + 3600 })),
      `${PROOF}proof_malformed`,
    ],
    ['a short jti', () => dpopRequest(claims({ jti: 'short' })), `${PROOF}proof_malformed`],
    [
      'a token for another audience',
      () => dpopRequest({ token: passportOf(billing(), 'https://admin.shop.example') }),
      '403 invalid_request_proof/audience',
    ],
    [
      "a revoked key's token",
      () => dpopRequest({ caller: derivedKeyCaller(site, 'dk_revoked') }),
      `${PROOF}key_revoked`,
    ],
    [
      'a proof as the token',
      () =>
        changed(
          dpopRequest(),
          'authorization',
          () => `DPoP ${headerValues(dpopRequest().headers, 'dpop')[0]}`,
        ),
      `${PROOF}passport_malformed`,
    ],
    [
      'the token as the proof',
      () => changed(dpopRequest(), 'dpop', () => passportOf()),
      `${PROOF}proof_malformed`,
    ],
    [
      'a transcript beside it',
      () => dpopRequest({ ...EITHER_TARGET, headers: [['x-proofgate-transcript', 'x']] }),
      `${PROOF}proof_ambiguous`,
    ],
    [
      'a transcript with a DPoP proof',
      () =>
        withLine(
          transcriptRequest(),
          'dpop',
          String(headerValues(dpopRequest(EITHER_TARGET).headers, 'dpop')[0]),
        ),
      `${PROOF}proof_ambiguous`,
    ],
    [
      'an HTTP message signature beside it',
      async () => {
        const headers = await httpSignature();
        return dpopRequest({ ...EITHER_TARGET, headers });
      },
      `${PROOF}proof_ambiguous`,
    ],
    [
      'a DPoP proof for a route of transcripts alone',
      () => dpopRequest({ target: '/v1/orders/4711' }),
      `${PROOF}authorization_scheme`,
    ],
  ];
}
