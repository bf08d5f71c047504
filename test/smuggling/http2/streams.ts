/** Several streams of one connection: proofs, bodies and answers must stay with their stream (RFC 9113 section 5). */
import {
  type FrameText,
  HIDDEN,
  type Http2Case,
  type LineText,
  named,
  type SignedPlan,
} from '../../support/hostile/cases.ts';
import { CREATE, READ } from './requests.ts';

const withProof = (lines: readonly LineText[], number: number): readonly LineText[] =>
  lines.map(([name, value]) => [name === '{proof}' ? `{proof.${number}}` : name, value]);
const withoutProof = (lines: readonly LineText[]) => lines.filter(([name]) => name !== '{proof}');
const head = (lines: readonly LineText[], stream: number, endStream = false): FrameText => ({
  kind: 'headers',
  lines,
  stream,
  endStream,
});
const data = (text: string, stream: number, endStream = false): FrameText => ({
  kind: 'data',
  text,
  stream,
  endStream,
});
const reset = (stream: number): FrameText => ({ kind: 'raw', type: 3, stream, hex: '00000008' });

const first: SignedPlan = { route: 'createOrder', body: 'first' };
const second: SignedPlan = { route: 'createOrder', body: 'second' };
const create1 = head(withProof(CREATE, 1), 1);
const create2 = head(withProof(CREATE, 2), 3);
const READ_PLAN: SignedPlan = { route: 'readOrder' };
const read1 = head(withProof(READ, 1), 1, true);

const CASES = named<readonly [readonly SignedPlan[], readonly FrameText[]]>({
  'bodies interleaved': [
    [first, second],
    [create1, create2, data('fir', 1), data('sec', 3), data('st', 1, true), data('ond', 3, true)],
  ],
  'bodies swapped': [
    [first, second],
    [create1, create2, data('second', 1, true), data('first', 3, true)],
  ],
  'bodies mixed': [
    [first, second],
    [create1, create2, data('firond', 1, true), data('secst', 3, true)],
  ],
  'second ended first': [
    [first, second],
    [create1, create2, data('second', 3, true), data('first', 1, true)],
  ],
  'first reset, its body to the second': [
    [first, second],
    [create1, create2, data('fir', 1), reset(1), data('st', 1, true), data('second', 3, true)],
  ],
  'one proof for two streams': [[READ_PLAN], [read1, head(withProof(READ, 1), 3, true)]],
  'one proof for ten streams': [
    [READ_PLAN],
    Array.from({ length: 10 }, (_, index) => head(withProof(READ, 1), 2 * index + 1, true)),
  ],
  'a stream without a proof behind': [[READ_PLAN], [read1, head(withoutProof(READ), 3, true)]],
  'a stream without a proof before': [
    [READ_PLAN],
    [head(withoutProof(READ), 1, true), head(withProof(READ, 1), 3, true)],
  ],
  'a stream without a proof, DATA of the other': [
    [first],
    [create1, head(withoutProof(CREATE), 3), data('first', 3, true), data('first', 1, true)],
  ],
  'credentials split over two streams': [
    [READ_PLAN, READ_PLAN],
    [
      head([...withoutProof(READ), ['{proof.1}', '']], 1),
      head([['{proof.2}', '']], 3, true),
      data('', 1, true),
    ],
  ],
  'proofs swapped': [
    [READ_PLAN, { route: 'createOrder', body: '' }],
    [head(withProof(READ, 2), 1, true), head(withProof(CREATE, 1), 3, true)],
  ],
  'DATA behind a denial': [
    [READ_PLAN],
    [
      head(withoutProof(CREATE), 1),
      data(HIDDEN, 1),
      data(HIDDEN, 1, true),
      head(withProof(READ, 1), 3, true),
    ],
  ],
  'reset of a request that is being verified': [
    [READ_PLAN, READ_PLAN],
    [read1, reset(1), head(withProof(READ, 2), 3, true)],
  ],
  'reset in the middle of a body': [
    [first, READ_PLAN],
    [create1, data('fir', 1), reset(1), head(withProof(READ, 2), 3, true)],
  ],
  'stream number reused behind a reset': [
    [READ_PLAN, READ_PLAN],
    [read1, reset(1), head(withProof(READ, 2), 1, true)],
  ],
  '200 streams, each reset at once': [
    [READ_PLAN],
    Array.from({ length: 200 }, (_, index): readonly FrameText[] => [
      head(withoutProof(READ), 2 * index + 1, true),
      reset(2 * index + 1),
    ])
      .flat()
      .concat(head(withProof(READ, 1), 501, true)),
  ],
  '200 streams with one proof, each reset at once': [
    [READ_PLAN],
    Array.from({ length: 200 }, (_, index): readonly FrameText[] => [
      head(withProof(READ, 1), 2 * index + 1, true),
      reset(2 * index + 1),
    ]).flat(),
  ],
  '300 streams at once': [
    [READ_PLAN],
    Array.from({ length: 300 }, (_, index) => head(withoutProof(READ), 2 * index + 1, true)).concat(
      head(withProof(READ, 1), 601, true),
    ),
  ],
  'unbound body, reset': [
    [{ route: 'upload' }, READ_PLAN],
    [
      head(
        [
          [':method', 'PUT'],
          [':scheme', 'http'],
          [':authority', 'api.shop.example'],
          [':path', '/v1/uploads'],
          ['{proof.1}', ''],
        ],
        1,
      ),
      data(HIDDEN, 1),
      reset(1),
      head(withProof(READ, 2), 3, true),
    ],
  ],
  'unbound body, trailers of ours': [
    [{ route: 'upload' }],
    [
      head(
        [
          [':method', 'PUT'],
          [':scheme', 'http'],
          [':authority', 'api.shop.example'],
          [':path', '/v1/uploads'],
          ['{proof.1}', ''],
        ],
        1,
      ),
      data(HIDDEN, 1),
      head([['x-proofgate-subject', 'root']], 1, true),
    ],
  ],
  'unbound body, wrong length': [
    [{ route: 'upload' }],
    [
      head(
        [
          [':method', 'PUT'],
          [':scheme', 'http'],
          [':authority', 'api.shop.example'],
          [':path', '/v1/uploads'],
          ['{proof.1}', ''],
          ['content-length', '5'],
        ],
        1,
      ),
      data(HIDDEN, 1, true),
    ],
  ],
  'unbound body, shorter than its length': [
    [{ route: 'upload' }],
    [
      head(
        [
          [':method', 'PUT'],
          [':scheme', 'http'],
          [':authority', 'api.shop.example'],
          [':path', '/v1/uploads'],
          ['{proof.1}', ''],
          ['content-length', '500'],
        ],
        1,
      ),
      data(HIDDEN, 1, true),
    ],
  ],
});

export const STREAMS: readonly Http2Case[] = CASES.map(([name, [signs, frames]]) => ({
  name: `streams: ${name}`,
  family: 'streams',
  success: 'a stream is served with the proof or body of another, or receives its answer',
  signs,
  frames,
}));
