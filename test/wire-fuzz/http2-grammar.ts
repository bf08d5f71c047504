/** HTTP/2 requests at the edges of their grammar: generated cases of the smuggling campaign. */
import fc from 'fast-check';
import type { FrameText, Http2Case, LineText } from '../support/hostile/cases.ts';
import {
  EXTRA_LINES,
  extraLines,
  fillerCount,
  PLANS,
  type PlannedRequest,
  seldom,
} from './planned-request.ts';

interface Http2Request {
  readonly planned: PlannedRequest;
  /** Replaces pseudo-headers or adds lines in front. */
  readonly pseudo: LineText | undefined;
  readonly body: Body;
  readonly extraLines: readonly LineText[];
  readonly fillerLines: number;
  readonly isFillerFirst: boolean;
  readonly splitBytes: number | undefined;
}

type Body =
  | { readonly kind: 'none' | 'signed' | 'other' | 'one_byte_frames' | 'no_end' | 'reset' | 'cut_off' }
  | { readonly kind: 'trailers'; readonly line: LineText }
  | { readonly kind: 'wrong_length'; readonly value: string };

const HOSTILE_BODIES: readonly Body[] = [
  { kind: 'other' },
  { kind: 'one_byte_frames' },
  { kind: 'no_end' },
  { kind: 'reset' },
  { kind: 'cut_off' },
  { kind: 'trailers', line: ['x-a', 'b'] },
  { kind: 'trailers', line: ['x-proofgate-subject', 'root'] },
  { kind: 'trailers', line: ['content-length', '0'] },
  { kind: 'trailers', line: [':path', '/v1/payroll'] },
  { kind: 'wrong_length', value: '{length.N+1}' },
  { kind: 'wrong_length', value: '0' },
  { kind: 'wrong_length', value: '+5' },
];

/** Mostly as the plan needs it, so that a good part of the requests passes the check. */
function bodyOf({ plan }: PlannedRequest): fc.Arbitrary<Body> {
  const hasBody = plan.body !== undefined;
  return fc.oneof(
    { weight: hasBody ? 1 : 6, arbitrary: fc.constant<Body>({ kind: 'none' }) },
    { weight: hasBody ? 6 : 1, arbitrary: fc.constant<Body>({ kind: 'signed' }) },
    { weight: 3, arbitrary: fc.constantFrom(...HOSTILE_BODIES) },
  );
}

const PSEUDO: readonly LineText[] = [
  [':method', 'DELETE'],
  [':method', 'CONNECT'],
  [':path', '/v1/payroll'],
  [':path', '/v1/orders/4711?a=1   '],
  [':path', ' /v1/orders/4711'],
  [':path', '*'],
  [':path', ''],
  [':scheme', 'https'],
  [':authority', 'api.other.example'],
  [':authority', 'api.shop.example, api.other.example'],
  [':protocol', 'websocket'],
];

const lowerCase = EXTRA_LINES.map((text): LineText => {
  const at = text.indexOf(':');
  return [text.slice(0, at).toLowerCase(), text.slice(at + 2)];
});

const MORE_LINES: readonly LineText[] = [
  ...lowerCase,
  ['transfer-encoding', 'chunked'],
  ['content-length', '5'],
  ['Upper', 'case'],
  ['a\r\nb', 'c'],
  ['a', 'b\r\nx-proofgate-subject: root'],
  ['', 'empty'],
];

const request: fc.Arbitrary<Http2Request> = fc.constantFrom(...PLANS).chain((planned) =>
  fc.record({
    planned: fc.constant(planned),
    pseudo: seldom(fc.constantFrom(...PSEUDO), undefined),
    body: bodyOf(planned),
    extraLines: extraLines(MORE_LINES),
    fillerLines: fillerCount,
    isFillerFirst: fc.boolean(),
    splitBytes: seldom(fc.integer({ min: 64, max: 4_000 }), undefined),
  }),
);

function framesOf(one: Http2Request, number: number): readonly FrameText[] {
  const { extraLines: extra, fillerLines, isFillerFirst, planned, pseudo, splitBytes } = one;
  const stream = 2 * number - 1;
  const filler = Array.from({ length: fillerLines }, (): LineText => ['a', '']);
  const usual: readonly LineText[] = [
    [':method', planned.method],
    [':scheme', 'http'],
    [':authority', 'api.shop.example'],
    [':path', planned.plan.target],
  ];
  const known = usual.some(([name]) => name === pseudo?.[0]);
  const first = usual.map((line) => (pseudo !== undefined && line[0] === pseudo[0] ? pseudo : line));
  const lines: readonly LineText[] = [
    ...first,
    ...(pseudo === undefined || known ? [] : [pseudo]),
    ...(isFillerFirst ? filler : []),
    [`{proof.${number}}`, ''],
    ...(isFillerFirst ? [] : filler),
    ...extra,
  ];
  return bodyFrames(one.body, number, { kind: 'headers', stream, lines, ...(splitBytes && { splitBytes }) });
}

type Head = Extract<FrameText, { kind: 'headers' }>;

function bodyFrames(sent: Body, number: number, head: Head): readonly FrameText[] {
  const stream = head.stream ?? 1;
  const signed = `{body.${number}}`;
  const data = (text: string, endStream = false): FrameText => ({ kind: 'data', stream, text, endStream });
  switch (sent.kind) {
    case 'none':
      return [{ ...head, endStream: true }];
    case 'signed':
      return [head, data(signed, true)];
    case 'other':
      return [head, data('other', true)];
    case 'one_byte_frames':
      return [head, ...Array.from({ length: 200 }, () => data('o')), data('', true)];
    case 'no_end':
      return [head, data(signed)];
    case 'reset':
      return [head, data(signed), { kind: 'raw', type: 3, stream, hex: '00000008' }];
    case 'cut_off':
      return [{ ...head, endHeaders: false }];
    case 'trailers':
      return [head, data(signed), { kind: 'headers', stream, lines: [sent.line], endStream: true }];
    case 'wrong_length': {
      const value = sent.value.replace('.N', `.${number}`);
      return [{ ...head, lines: [...head.lines, ['content-length', value]] }, data(signed, true)];
    }
  }
}

/** One to three requests on the streams of a connection. */
export const http2Case: fc.Arbitrary<Omit<Http2Case, 'name'>> = fc
  .array(request, { minLength: 1, maxLength: 3 })
  .map((requests) => ({
    family: 'generated',
    success: 'an unsigned request, body or header reaches the upstream',
    signs: requests.map(({ planned }) => planned.plan),
    frames: requests.flatMap((one, index) => framesOf(one, index + 1)),
  }));
