/**
 * Fuzzes transcripts: text, well-formed or not, signed by the holder whom the passport names and sent with one request.
 * Whatever holders sign, the request is allowed only where the transcript matches it, line by line.
 */

import { signMessage } from '../../../src/protocol/signature.ts';
import { formatTranscript, parseTranscript, type Transcript } from '../../../src/protocol/transcript.ts';
import { SIGNATURE_HEADER, TRANSCRIPT_HEADER } from '../../../src/protocol/wire-names.ts';
import { factsOfWire, type HeaderLine } from '../../support/fixtures/signed-request.ts';
import { TEST_SITE_KEYS } from '../../support/fixtures/test-keys.ts';
import { wireRequestOf } from '../../support/protocol/published-vectors.ts';
import { decideAtSite, NOW_SECONDS, SITE_ALLOWED, SITE_CONTENT, SITE_DENIED } from '../site.ts';
import { type FuzzTarget, mustHold } from '../target.ts';

const MAX_BYTES = 8192;
const holder = TEST_SITE_KEYS.billing;
const base = SITE_ALLOWED.find(({ name }) => name === 'table, a derived key: nothing wrong');
if (base === undefined) throw new Error('the request that transcripts are sent with is gone');
const request = wireRequestOf(base.request);
const signedText = textOf(request.headers);
const signed =
  signedText === undefined ? undefined : parseTranscript(Buffer.from(signedText, 'latin1'), 'authorization');

function run(input: Buffer): void {
  const transcript = parseTranscript(input, 'authorization');
  if (transcript === undefined) return;
  mustHold(input.length <= MAX_BYTES, 'a transcript has at most 8 KiB');
  mustHold(formatTranscript(transcript) === input.toString('latin1'), 'a transcript is written in one way');
  checkShape(transcript);
  if (isAllowed(input))
    mustHold(saysTheRequest(transcript), 'only a transcript of this very request is allowed');
}

/** docs/design/protocol.md "Transcript", once more. */
function checkShape(t: Transcript): void {
  const names = t.headers.map(({ name }) => name);
  mustHold(names.join() === [...new Set(names)].sort().join(), 'names are sorted, each once');
  mustHold(
    names.every(
      (name) => name !== 'authorization' && !name.startsWith('x-proofgate-') && /^[a-z0-9_-]+$/.test(name),
    ),
    'none of the credentials is signed',
  );
  mustHold(
    t.headers.every(({ value }) => value !== '' && value.trim() === value && !/[^ -~]/.test(value)),
    'values are visible, without space at their ends',
  );
  mustHold(t.jti.length >= 22 && t.jti.length <= 128, 'a jti has 22 to 128 characters');
  mustHold(
    [t.issuedAtSeconds, t.expiresAtSeconds].every((time) => Number.isSafeInteger(time) && time > 0),
    'times',
  );
}

function isAllowed(transcript: Buffer): boolean {
  const signature = signMessage(holder.publicKey.algorithm, holder.privateKey, transcript);
  const headers = request.headers.map(({ name, value }): HeaderLine => {
    const lower = name.toLowerCase();
    if (lower === TRANSCRIPT_HEADER) return { name, value: transcript.toString('base64url') };
    return lower === SIGNATURE_HEADER ? { name, value: signature.toString('base64url') } : { name, value };
  });
  return decideAtSite(factsOfWire({ ...request, headers })).kind === 'allowed';
}

/** The caller chooses `jti`, the times within their bounds, and which headers are signed beside the route's. */
function saysTheRequest(t: Transcript): boolean {
  if (signed === undefined) return false;
  const skewSeconds = SITE_CONTENT.skew_seconds ?? 5;
  const lifeSeconds = t.expiresAtSeconds - t.issuedAtSeconds;
  const { expiresAtSeconds, headers, issuedAtSeconds, jti } = t;
  const others = { expiresAtSeconds, headers, issuedAtSeconds, jti };
  const isInTime =
    issuedAtSeconds - skewSeconds <= NOW_SECONDS && NOW_SECONDS < expiresAtSeconds + skewSeconds;
  return (
    formatTranscript({ ...signed, ...others }) === formatTranscript(t) &&
    lifeSeconds >= 1 &&
    lifeSeconds <= 300 &&
    isInTime &&
    signed.headers.every(({ name }) => headers.some((header) => header.name === name)) &&
    headers.every(({ name, value }) => isLineOfRequest(name, value))
  );
}

function isLineOfRequest(name: string, value: string): boolean {
  const lines = request.headers.filter((line) => line.name.toLowerCase() === name);
  return lines.length === 1 && lines[0]?.value.trim() === value;
}

function textOf(headers: readonly HeaderLine[]): string | undefined {
  const value = headers.find(({ name }) => name.toLowerCase() === TRANSCRIPT_HEADER)?.value;
  return value === undefined ? undefined : Buffer.from(value, 'base64url').toString('latin1');
}

const texts = new Set(
  [...SITE_ALLOWED, ...SITE_DENIED].flatMap((vector) => textOf(wireRequestOf(vector.request).headers) ?? []),
);

export const transcriptTarget: FuzzTarget = {
  name: 'transcript',
  seeds: [signedText ?? '', ...texts].map((text) => Buffer.from(text, 'latin1')),
  dictionary: [
    'transcript-v1\n',
    ...[
      'auth-site=',
      'key-id=',
      'passport-sha256=',
      'issuer=',
      'subject=',
      'audience=',
      'route-id=',
      'method=',
    ],
    ...[
      'scheme=',
      'authority=',
      'target=',
      'jti=',
      'issued-at=',
      'expires-at=',
      'content-sha256=',
      'headers=',
    ],
    ...[
      'header.',
      'header.x-tenant=acme\n',
      'x-tenant',
      ',x-b',
      'authorization',
      'x-proofgate-signature',
      '=-\n',
    ],
    ...['https', 'http', 'GET', 'POST', '/v1/orders', '%2e', '\r\n', '\t', ' \n', '= '],
  ],
  maxBytes: MAX_BYTES + 100,
  maxStepsPerByte: 40,
  run,
};
