/** HTTP/1.1 requests at the edges of their grammar: generated cases of the smuggling campaign. */
import fc from 'fast-check';
import { HIDDEN, type Http1Case } from '../support/hostile/cases.ts';
import {
  EXTRA_LINES,
  extraLines,
  fillerCount,
  PLANS,
  type PlannedRequest,
  seldom,
} from './planned-request.ts';

interface Http1Request {
  readonly planned: PlannedRequest;
  /** Instead of the planned request line. */
  readonly startLine: string | undefined;
  readonly framing: Framing;
  readonly extraLines: readonly string[];
  readonly fillerLines: number;
  /** Filler stands before all lines, or between the proof and the lines that frame the body. */
  readonly isFillerFirst: boolean;
}

/** Header lines that frame the body, and the bytes behind the head. `N` stands for the number of the request. */
interface Framing {
  readonly lines: readonly string[];
  readonly bytes: string;
}

const CHUNKED = 'Transfer-Encoding: chunked';

/** `text` in chunks of one byte. */
function oneByteChunks(text: string): string {
  return `${[...text].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`;
}

/** Framings that a server may take, and deliver the body as it was signed. */
const SOUND_FRAMINGS: readonly Framing[] = [
  { lines: ['Content-Length: {length.N}'], bytes: '{body.N}' },
  { lines: [CHUNKED], bytes: '{hex.N}\r\n{body.N}\r\n0\r\n\r\n' },
  { lines: [CHUNKED], bytes: '{hex.N};a=b;c="d"\r\n{body.N}\r\n0\r\n\r\n' },
  { lines: [CHUNKED, 'Trailer: x-a'], bytes: '{hex.N}\r\n{body.N}\r\n0\r\nX-A: b\r\n\r\n' },
];

/** Framings that are wrong, or that carry unsigned bytes. */
const HOSTILE_FRAMINGS: readonly Framing[] = [
  { lines: ['Content-Length: 5'], bytes: 'other' },
  { lines: [CHUNKED], bytes: oneByteChunks('other') },
  { lines: [CHUNKED], bytes: oneByteChunks('o'.repeat(2_000)) },
  { lines: [CHUNKED], bytes: '5;a="\r\nother\r\n0\r\n\r\n' },
  { lines: [CHUNKED], bytes: '5\r\nother\r\n0\r\nContent-Length: 0\r\nX-Proofgate-Subject: root\r\n\r\n' },
  { lines: [CHUNKED], bytes: `0\r\n\r\n${HIDDEN}` },
  { lines: [CHUNKED], bytes: '0x5\r\nother\r\n0\r\n\r\n' },
  { lines: [CHUNKED], bytes: '-5\r\nother\r\n0\r\n\r\n' },
  { lines: [CHUNKED], bytes: '5\nother\n0\n\n' },
  { lines: [CHUNKED], bytes: '5\r\noth' },
  { lines: [CHUNKED], bytes: 'FFFFFFFFFFFFFFFF\r\nother' },
  { lines: [CHUNKED, 'Content-Length: {length.N}'], bytes: '{body.N}' },
  { lines: ['Content-Length: {length.N}', CHUNKED], bytes: `0\r\n\r\n${HIDDEN}` },
  { lines: ['Content-Length: 0'], bytes: HIDDEN },
  { lines: ['Content-Length: {length.N+1}'], bytes: '{body.N}' },
  { lines: ['Content-Length: {length.N}', 'Content-Length: 0'], bytes: '{body.N}' },
  { lines: ['Content-Length: {length.N}', 'Content-Length: {length.N}'], bytes: '{body.N}' },
  { lines: ['Content-Length: +5'], bytes: 'other' },
  { lines: ['Content-Length : 5'], bytes: 'other' },
  { lines: ['Content-Length: 5, 5'], bytes: 'other' },
  { lines: ['Content-Length: 5 '], bytes: 'other' },
  { lines: ['Content_Length: 5'], bytes: 'other' },
  { lines: ['Transfer-Encoding : chunked'], bytes: '5\r\nother\r\n0\r\n\r\n' },
  { lines: ['Transfer-Encoding: gzip, chunked'], bytes: '5\r\nother\r\n0\r\n\r\n' },
  { lines: ['Transfer-Encoding: chunked, identity'], bytes: '5\r\nother\r\n0\r\n\r\n' },
  { lines: ['Transfer-Encoding: xchunked'], bytes: '5\r\nother\r\n0\r\n\r\n' },
  { lines: ['Transfer-Encoding:\tchunked'], bytes: '5\r\nother\r\n0\r\n\r\n' },
  { lines: ['Transfer-Encoding: identity'], bytes: 'other' },
  { lines: [CHUNKED, CHUNKED], bytes: '5\r\nother\r\n0\r\n\r\n' },
  { lines: ['Expect: 100-continue', 'Content-Length: {length.N}'], bytes: '{body.N}' },
  { lines: ['Expect: 100-continue', CHUNKED], bytes: '5\r\nother\r\n0\r\n\r\n' },
];

/** Mostly as the plan needs it, so that a good part of the requests passes the check. */
function framingOf({ plan }: PlannedRequest): fc.Arbitrary<Framing> {
  const hasBody = plan.body !== undefined;
  return fc.oneof(
    { weight: hasBody ? 1 : 6, arbitrary: fc.constant({ lines: [], bytes: '' }) },
    { weight: hasBody ? 6 : 1, arbitrary: fc.constantFrom(...SOUND_FRAMINGS) },
    { weight: 3, arbitrary: fc.constantFrom(...HOSTILE_FRAMINGS) },
  );
}

const START_LINES: readonly string[] = [
  'GET /v1/payroll?case={id} HTTP/1.1',
  'GET  /v1/orders/4711?case={id} HTTP/1.1',
  'GET /v1/orders/4711?case={id} HTTP/1.0',
  'GET /v1/orders/4711?case={id} HTTP/1.2',
  'GET /v1/orders/4711?case={id}    HTTP/1.1',
  'GET /v1/orders/4711?case={id} ',
  'GET http://api.shop.example/v1/orders/4711?case={id} HTTP/1.1',
  'get /v1/orders/4711?case={id} HTTP/1.1',
  'HEAD /v1/orders/4711?case={id} HTTP/1.1',
  'CONNECT api.shop.example:80 HTTP/1.1',
  'POST /v1/orders/../orders?case={id} HTTP/1.1',
  'PRI * HTTP/2.0',
];

/** @param startLine undefined: the planned one */
const requestWith = (startLine: fc.Arbitrary<string | undefined>): fc.Arbitrary<Http1Request> =>
  fc.constantFrom(...PLANS).chain((planned) =>
    fc.record({
      planned: fc.constant(planned),
      startLine,
      framing: framingOf(planned),
      extraLines: extraLines(EXTRA_LINES),
      fillerLines: fillerCount,
      isFillerFirst: fc.boolean(),
    }),
  );

function textOf(one: Http1Request, number: number): string {
  const { extraLines: extra, fillerLines, framing: framed, isFillerFirst, planned, startLine } = one;
  const filler = Array.from({ length: fillerLines }, () => 'a:');
  const lines = [
    startLine ?? `${planned.method} ${planned.plan.target} HTTP/1.1`,
    'Host: api.shop.example',
    ...(isFillerFirst ? filler : []),
    // The marker ends with a line break of its own.
    ...extra,
  ];
  const behind = [...(isFillerFirst ? [] : filler), ...framed.lines];
  const head = `${lines.join('\r\n')}\r\n{proof.N}${behind.map((line) => `${line}\r\n`).join('')}\r\n`;
  return (head + framed.bytes).replaceAll(/\{(proof|body|length|hex)\.N/g, `{$1.${number}`);
}

/** One to three requests on a connection, as written, cut off or torn apart. */
function caseOf(request: fc.Arbitrary<Http1Request>): fc.Arbitrary<Omit<Http1Case, 'name'>> {
  return fc
    .record({
      requests: fc.array(request, { minLength: 1, maxLength: 3 }),
      keptShare: seldom(fc.double({ min: 0.05, max: 1, noNaN: true }), 1),
      tornAt: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 2 }),
    })
    .map(({ keptShare, requests, tornAt }) => {
      const whole = requests.map((one, index) => textOf(one, index + 1)).join('');
      const text = whole.slice(0, Math.ceil(whole.length * keptShare));
      return {
        family: 'generated',
        success: 'an unsigned request, body or header reaches the upstream',
        signs: requests.map(({ planned }) => planned.plan),
        writes: torn(text, tornAt),
      };
    });
}

/** Signed requests. */
export const http1Case = caseOf(requestWith(seldom(fc.constantFrom(...START_LINES), undefined)));

/** Requests to other targets than those that are signed. */
export const http1CaseTo = (startLines: readonly string[]): fc.Arbitrary<Omit<Http1Case, 'name'>> =>
  caseOf(requestWith(fc.constantFrom(...startLines)));

/** A marker is never torn: only between its lines. */
function torn(text: string, shares: readonly number[]): readonly string[] {
  const ends = shares
    .map((share) => text.indexOf('\r', Math.floor(text.length * share)))
    .filter((at) => at > 0);
  const cuts = [0, ...ends.toSorted((left, right) => left - right), text.length];
  return cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
}
