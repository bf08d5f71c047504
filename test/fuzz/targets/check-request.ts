/**
 * Fuzzes CheckRequests: bytes, message, facts, decision, answer. An input is either the message's bytes (`w…`), or a text from
 * which a message is made (`t…`), so that not every change breaks the encoding.
 */
import { createPublicKey, hash, verify } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { createResponseEncoder } from '../../../src/enforcement/ext-authz-grpc/check-response.ts';
import { decodeCheckRequest } from '../../../src/process/ext-authz/decode-check-request.ts';
import type { CheckRequest } from '../../../src/process/ext-authz/request-messages.ts';
import {
  loadPackageDefinition,
  requestSerializer,
  responseSerializers,
} from '../../../src/process/ext-authz/service.ts';
import type { RequestHeaders } from '../../../src/protocol/credentials.ts';
import { isCanonicalTarget } from '../../../src/protocol/request-target.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../../src/protocol/wire-names.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { factsOfCheckRequest } from '../../../src/verifier/envoy-request/check-request.ts';
import { mergedCheckRequest, rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { type HeaderLine, headersOfLines, type WireRequest } from '../../support/fixtures/signed-request.ts';
import { decodeCheckResponse } from '../../support/harness/check-client.ts';
import { wireRequestOf } from '../../support/protocol/published-vectors.ts';
import { decideAtSite, SITE_ALLOWED, SITE_DENIED } from '../site.ts';
import { type FuzzTarget, mustHold } from '../target.ts';

const definition = loadPackageDefinition();
const encodeRequest = requestSerializer(definition);
const encodeAnswer = createResponseEncoder(responseSerializers(definition));

const OF_BYTES = 0x77;

function run(input: Buffer): void {
  const rest = input.subarray(1);
  checkBytes(input[0] === OF_BYTES ? rest : encodeRequest(rawCheckRequest(requestOfText(rest))));
}

function checkBytes(bytes: Buffer): void {
  const request = decodedOrRefused(bytes);
  if (request === undefined) return;
  const again = decodeCheckRequest(encodeRequest(withBytes(request)));
  mustHold(isDeepStrictEqual(again, request), 'what was decoded is the same when encoded and decoded again');
  const facts = factsOfCheckRequest(request, bytes.length % 2 === 0 ? 'buffered' : 'none');
  const decision = decideAtSite(facts);
  if (decision.kind === 'allowed') {
    mustHold(isAsSigned(facts), 'only what was signed is allowed');
    mustHold(isCanonicalTarget(facts.target), 'only a canonical path is allowed');
  }
  const answer = decodeCheckResponse(encodeAnswer(decision, facts.headers));
  const saysAllowed = answer.status?.code === 0 && answer.denied_response === undefined;
  mustHold(saysAllowed === (decision.kind === 'allowed'), 'the answer says what was decided');
}

/** Decoded header values are text: the library encodes bytes. */
function withBytes(request: CheckRequest): CheckRequest {
  const http = request.attributes?.request?.http;
  if (http?.header_map?.headers === undefined) return request;
  const headers = http.header_map.headers.map(({ raw_text, ...line }) =>
    raw_text === undefined ? line : { ...line, raw_value: Buffer.from(raw_text, 'latin1') },
  );
  return { attributes: { request: { http: { ...http, header_map: { headers } } } } };
}

/** Whatever is thrown for bytes that are no CheckRequest, it is no fault of ours: those are TypeErrors. */
function decodedOrRefused(bytes: Buffer): CheckRequest | undefined {
  try {
    return decodeCheckRequest(bytes);
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError) throw error;
    return undefined;
  }
}

/** The fuzzer has no signing key: an allowed request carries a passport and a proof of one of the vectors. */
const requests = [...SITE_ALLOWED, ...SITE_DENIED].map(({ request }) => wireRequestOf(request));
const PASSPORTS = new Set(
  requests.map(({ headers, target }) => passportOf({ headers: headersOfLines(headers), target })),
);

/** Whether the holder signed these very facts: the lines of docs/design/protocol.md "Transcript", once more. */
function isAsSigned(facts: RequestFacts): boolean {
  const transcript = Buffer.from(headerValueOf(facts.headers, TRANSCRIPT_HEADER), 'base64url');
  const signature = Buffer.from(headerValueOf(facts.headers, SIGNATURE_HEADER), 'base64url');
  const passport = passportOf(facts);
  if (!PASSPORTS.has(passport) || !holds(passport, transcript, signature)) return false;
  const lines = transcript.toString('latin1').split('\n');
  const line = (name: string) => lines.find((text) => text.startsWith(`${name}=`))?.slice(name.length + 1);
  return (
    line('method') === facts.method &&
    line('target') === facts.target &&
    line('scheme') === facts.scheme &&
    line('authority') === facts.authority.toLowerCase().replace(/:443$/, '') &&
    isBodyOf(line('content-sha256'), facts) &&
    (line('headers') ?? '')
      .split(',')
      .every((name) => name === '-' || line(`header.${name}`) === headerValueOf(facts.headers, name))
  );
}

/** Under node:crypto, whatever the verifier uses. */
function holds(jws: string, message: Buffer, signature: Buffer): boolean {
  const claims = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
  const key = createPublicKey({ key: claims.cnf.jwk, format: 'jwk' });
  return key.asymmetricKeyType === 'ed25519'
    ? verify(null, message, key, signature)
    : verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature);
}

function isBodyOf(sha256: string | undefined, { body, method, target }: RequestFacts): boolean {
  if (target.startsWith('/v1/uploads/')) return sha256 === '-';
  if (body.kind === 'exact' && (body.bytes.length > 0 || sha256 !== '-')) {
    return sha256 === hash('sha256', body.bytes, 'base64url');
  }
  if (body.kind === 'unknown') return false;
  return sha256 === (['POST', 'PUT', 'PATCH'].includes(method) ? hash('sha256', '', 'base64url') : '-');
}

function passportOf({ headers, target }: Pick<RequestFacts, 'headers' | 'target'>): string {
  if (/^\/v1\/bearer(?:\?|$)/.test(target)) return headerValueOf(headers, PASSPORT_HEADER);
  return headerValueOf(headers, AUTHORIZATION_HEADER).replace(/^passport /i, '');
}

function headerValueOf(headers: RequestHeaders, name: string): string {
  const found = headers.lookup(name);
  return found.kind === 'single' ? found.value : '';
}

/** Method, scheme, authority and target on a line each, header lines up to an empty one, then the body. */
function requestOfText(bytes: Buffer): WireRequest {
  const text = bytes.toString('latin1');
  const end = text.indexOf('\n\n');
  const [method = '', scheme = '', authority = '', target = '', ...lines] = text
    .slice(0, end === -1 ? undefined : end)
    .split('\n');
  const headers = lines.map((line): HeaderLine => {
    const colon = line.indexOf(':', 1);
    return { name: line.slice(0, Math.max(0, colon)), value: line.slice(colon + 1) };
  });
  const body: WireRequest['body'] =
    end === -1 ? { kind: 'none' } : { kind: 'exact', bytes: Buffer.from(text.slice(end + 2), 'latin1') };
  return { method, scheme, authority, target, headers, body };
}

function textOfRequest({ authority, body, headers, method, scheme, target }: WireRequest): string {
  const lines = [method, scheme, authority, target, ...headers.map(({ name, value }) => `${name}:${value}`)];
  const end = body.kind === 'exact' ? `\n\n${Buffer.from(body.bytes).toString('latin1')}` : '';
  return `t${lines.join('\n')}${end}`;
}

const ofBytes = (request: CheckRequest): Buffer =>
  Buffer.concat([Buffer.of(OF_BYTES), encodeRequest(request)]);

export const checkRequestTarget: FuzzTarget = {
  name: 'check-request',
  seeds: [
    ...requests.flatMap((wire) => [
      ofBytes(rawCheckRequest(wire)),
      Buffer.from(textOfRequest(wire), 'latin1'),
    ]),
    ...requests.slice(0, 20).map((wire) => ofBytes(mergedCheckRequest(wire))),
    ofBytes({}),
  ],
  dictionary: [
    'authorization:Passport ',
    'x-proofgate-transcript:',
    'x-proofgate-signature:',
    'x-envoy-auth-partial-body:',
    'content-length:0',
    'transfer-encoding:chunked',
    'upgrade:',
    ':path:',
    '\x0a\x00',
    '\x1a\x02\x0a\x00',
    '\x22\x01/',
    '\x6a\x04\x0a\x02\x0a\x00',
    '\xff\xff\xff\xff\x0f',
    '%2e%2e',
    '//',
    '!',
    ',',
  ],
  maxBytes: 8192,
  maxStepsPerByte: 40,
  run,
};
