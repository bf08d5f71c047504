/** What an upstream may see of an allowed request: what was signed, the verifier's context headers, and no credentials. */
import { expect } from '@jest/globals';
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import type { ProofFormat } from '../../src/protocol/proof-format.ts';
import { decodeTranscript, parseTranscript, type SignedHeader } from '../../src/protocol/transcript.ts';
import {
  AUTHORIZATION_HEADER,
  CONTEXT_HEADERS,
  DPOP_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
  PASSPORT_HEADER,
  PROOF_FIELDS,
  PROOF_HEADER,
  TRANSCRIPT_HEADER,
} from '../../src/protocol/wire-names.ts';
import { headerValues, type WireRequest } from '../../src/tools/conformance/wire/exchange.ts';
import type { UpstreamRequest } from '../support/harness/upstream.ts';
import { isForbidden } from '../support/site/smuggled-headers.ts';

/** The host that cases name beside the signed one. */
const OTHER_HOST = 'api.other.example';

export function expectForwarded(
  arrived: readonly UpstreamRequest[],
  request: WireRequest,
  snapshot: Snapshot | undefined,
): void {
  const [forwarded] = arrived;
  const signed = signedOf(request);
  if (forwarded === undefined || signed === undefined) throw new Error('nothing signed was forwarded');
  const values = (name: string) => headerValues(forwarded.headers, name);
  expect({
    requests: arrived.length,
    method: forwarded.method,
    target: forwarded.url,
    body: forwarded.body.toString('latin1'),
    signedHeaders: signed.headers.map(({ name }) => values(name)),
    trailers: forwarded.trailers.filter(([name]) => isForbidden(name)),
    otherHosts: [...values('host'), ...values(':authority')].filter((host) => host === OTHER_HOST),
  }).toEqual({
    requests: 1,
    method: signed.method,
    target: signed.target,
    body: Buffer.from(request.body ?? '').toString('latin1'),
    signedHeaders: signed.headers.map(({ value }) => [value]),
    trailers: [],
    otherHosts: [],
  });
  const match = snapshot?.routes.match(
    signed.method,
    `http://${signed.authority}`,
    signed.target.split('?')[0] ?? '',
  );
  if (match?.kind !== 'route') throw new Error('the request is of no route');
  const { route } = match;
  const hasProofHeader = route.acceptedProofs !== undefined;
  expectContext(forwarded, signed.keyId, hasProofHeader, snapshot);
  expect([values(CONTEXT_HEADERS.subject), values(CONTEXT_HEADERS.routeId), values(PROOF_HEADER)]).toEqual([
    [signed.subject],
    [route.routeId],
    hasProofHeader ? [signed.format] : [],
  ]);
  const keepsAuthorization = route.forwardAuthorization || route.passportHeader === PASSPORT_HEADER;
  const sent = headerValues(request.headers ?? [], AUTHORIZATION_HEADER);
  expect(values(AUTHORIZATION_HEADER)).toEqual(keepsAuthorization ? sent : []);
  expect(PROOF_FIELDS.flatMap(values).filter((value) => OWN_PROOF.test(value))).toEqual([]);
}

/** Of a signature for the site, or of a DPoP proof; signatures of others begin with `cdn=`. */
const OWN_PROOF = /sig=|^ey/;

interface Signed {
  readonly format: ProofFormat;
  readonly method: string;
  readonly target: string;
  readonly authority: string;
  readonly headers: readonly SignedHeader[];
  readonly keyId: string;
  readonly subject: string;
}

function signedOf(request: WireRequest): Signed | undefined {
  const sentValue = (name: string) => headerValues(request.headers ?? [], name)[0]?.trim();
  const transcript = sentValue(TRANSCRIPT_HEADER);
  if (transcript !== undefined) {
    const signed = parseTranscript(decodeTranscript(transcript) ?? Buffer.alloc(0), PASSPORT_HEADER);
    return signed && { format: 'transcript-v1', ...signed };
  }
  const { authority, method, target } = request;
  const token = /^(?:Passport|DPoP) (.*)$/i.exec(sentValue(AUTHORIZATION_HEADER) ?? '')?.[1];
  const identity = identityIn(sentValue(PASSPORT_HEADER) ?? token);
  const input = sentValue(HTTP_SIGNATURE_INPUT_HEADER);
  const [, covered = ''] = /sig=\(([^)]*)\)/.exec(input ?? '') ?? [];
  const names = covered.split(' ').map((name) => name.slice(1, -1));
  return {
    format: sentValue(DPOP_HEADER) === undefined ? 'http-message-signatures' : 'dpop',
    ...{ authority, method, target },
    headers: names
      .filter((name) => !/^$|^@/.test(name) && name !== AUTHORIZATION_HEADER && name !== PASSPORT_HEADER)
      .map((name) => ({ name, value: sentValue(name) ?? '' })),
    keyId: identity?.keyId ?? /;keyid="([^"]*)"/.exec(input ?? '')?.[1] ?? '',
    subject: identity?.subject ?? 'client:billing',
  };
}

function identityIn(jws: string | undefined) {
  if (jws === undefined) return undefined;
  const [header, claims] = jws
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
  const isAccessToken = header.typ === 'at+jwt';
  return { keyId: String(header.kid), subject: `${isAccessToken ? 'sub:' : ''}${claims.sub}` };
}

/** Of our prefix and of rewriting headers, exactly the context headers, each once: whatever the caller sent is gone. */
function expectContext(
  { headers }: UpstreamRequest,
  keyId: string,
  hasProofHeader: boolean,
  snapshot: Snapshot | undefined,
): void {
  const isDerived = snapshot?.keys.get(keyId)?.kind === 'derived_key';
  const names: readonly string[] = [
    ...Object.values(CONTEXT_HEADERS).filter((name) => isDerived || name !== CONTEXT_HEADERS.clientId),
    ...(hasProofHeader ? [PROOF_HEADER] : []),
  ];
  const seen = headers.filter(([name]) => isForbidden(name)).map(([name]) => name.toLowerCase());
  expect(seen.sort()).toEqual([...names].sort());
  expect(headerValues(headers, CONTEXT_HEADERS.keyId)).toEqual([keyId]);
}
