/**
 * Frames out of order, of wrong sizes, on wrong streams, and in floods (RFC 9113 sections 4 to 6 and 10.5).
 * Sources: CVE-2023-44487 (rapid reset), CVE-2024-24549 and VU#421644 (CONTINUATION flood), CVE-2019-9511 to -9518 (floods),
 * CVE-2025-8671 (made you reset), CVE-2024-27983 (Node).
 */
import { type FrameText, HIDDEN, type Http2Case, named } from '../../support/hostile/cases.ts';
import { CREATE, READ, SIGNS_READ } from './requests.ts';

const read: FrameText = { kind: 'headers', lines: READ, endStream: true };
const create: FrameText = { kind: 'headers', lines: CREATE };
const hidden = (endStream = true): FrameText => ({ kind: 'data', text: HIDDEN, endStream });
const raw = (type: number, rest: Partial<FrameText & { kind: 'raw' }> = {}): FrameText => ({
  kind: 'raw',
  type,
  ...rest,
});
const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const RESET = 3;
const SETTINGS = 4;
const PUSH = 5;
const PING = 6;
const GOAWAY = 7;
const WINDOW = 8;
const CONTINUATION = 9;

const about = (name: string, family: string) => ({
  name: `frames: ${name}`,
  family,
  success: 'a request or body that was not verified reaches the upstream, or the point stops serving',
});

/** Around a signed GET. */
const AROUND_READ = named<readonly FrameText[]>({
  'DATA behind END_STREAM': [read, hidden()],
  'DATA behind END_STREAM, not ended': [read, hidden(false)],
  'trailers behind END_STREAM': [read, { kind: 'headers', lines: [['x-a', 'b']], endStream: true }],
  'the same stream again': [read, read],
  'a lower stream': [
    { ...read, stream: 5 },
    { ...read, stream: 3 },
  ],
  'stream 0': [{ ...read, stream: 0 }],
  'an even stream': [{ ...read, stream: 2 }],
  'stream 2^31 - 1': [{ ...read, stream: 0x7fffffff }],
  'the reserved bit of the stream': [{ ...read, stream: 0x80000001 }],
  'DATA on an idle stream first': [raw(DATA, { stream: 1, text: HIDDEN }), read],
  'DATA on stream 0': [read, raw(DATA, { text: HIDDEN })],
  'CONTINUATION without HEADERS': [raw(CONTINUATION, { stream: 1, flags: 4, hex: '82' }), read],
  'CONTINUATION behind END_HEADERS': [read, raw(CONTINUATION, { stream: 1, flags: 4, hex: '82' })],
  'no END_HEADERS, then DATA': [{ ...read, endHeaders: false }, hidden()],
  'no END_HEADERS, then PING': [{ ...read, endHeaders: false }, raw(PING, { hex: '0000000000000000' })],
  'no END_HEADERS, then CONTINUATION of another stream': [
    { ...read, endHeaders: false },
    raw(CONTINUATION, { stream: 3, flags: 4, hex: '82' }),
  ],
  'no END_HEADERS, then an empty CONTINUATION': [
    { ...read, endHeaders: false },
    raw(CONTINUATION, { stream: 1, flags: 4 }),
  ],
  'no END_HEADERS, then 5,000 empty CONTINUATION': [
    { ...read, endHeaders: false },
    raw(CONTINUATION, { stream: 1, times: 5000 }),
    raw(CONTINUATION, { stream: 1, flags: 4 }),
  ],
  'no END_HEADERS, then CONTINUATION without end': [
    { ...read, endHeaders: false },
    raw(CONTINUATION, { stream: 1, hex: `000161${'7f9f1e'}${'62'.repeat(4000)}`, times: 300 }),
  ],
  'a pseudo header in CONTINUATION': [
    { ...read, endHeaders: false },
    raw(CONTINUATION, { stream: 1, flags: 4, hex: '84' }),
  ],
  'a header of ours in CONTINUATION': [
    { ...read, endHeaders: false },
    raw(CONTINUATION, {
      stream: 1,
      flags: 4,
      hex: `0013${Buffer.from('x-proofgate-subject').toString('hex')}04726f6f74`,
    }),
  ],
  'depends on itself': [{ ...read, dependsOn: 1 }],
  'depends on another stream': [{ ...read, dependsOn: 3 }],
  'depends on itself, exclusively': [{ ...read, dependsOn: 0x80000001 }],
  'PRIORITY first': [raw(PRIORITY, { stream: 1, hex: '0000000010' }), read],
  'PRIORITY of a wrong length': [raw(PRIORITY, { stream: 1, hex: '00000000' }), read],
  'PRIORITY on stream 0': [raw(PRIORITY, { hex: '0000000010' }), read],
  PRIORITY_UPDATE: [raw(16, { hex: '00000001753d30' }), read],
  'reset at once': [read, raw(RESET, { stream: 1, hex: '00000008' })],
  'reset of an idle stream': [raw(RESET, { stream: 1, hex: '00000008' }), read],
  'reset on stream 0': [read, raw(RESET, { hex: '00000008' })],
  'reset of a wrong length': [read, raw(RESET, { stream: 1, hex: '000008' })],
  'PUSH_PROMISE from the caller': [read, raw(PUSH, { stream: 1, flags: 4, hex: '0000000282' })],
  'GOAWAY, then the request': [raw(GOAWAY, { hex: '0000000000000000' }), read],
  'GOAWAY behind the request': [read, raw(GOAWAY, { hex: '0000000000000000' })],
  'GOAWAY on a stream': [read, raw(GOAWAY, { stream: 1, hex: '0000000000000000' })],
  'WINDOW_UPDATE of 0': [raw(WINDOW, { hex: '00000000' }), read],
  'WINDOW_UPDATE of 0 on the stream': [read, raw(WINDOW, { stream: 1, hex: '00000000' })],
  'WINDOW_UPDATE that overflows': [raw(WINDOW, { hex: '7fffffff', times: 2 }), read],
  'WINDOW_UPDATE of an idle stream': [raw(WINDOW, { stream: 7, hex: '00000001' }), read],
  'WINDOW_UPDATE of a wrong length': [raw(WINDOW, { hex: '0001' }), read],
  '1,000 WINDOW_UPDATE of one byte': [raw(WINDOW, { hex: '00000001', times: 1000 }), read],
  'PING of a wrong length': [raw(PING, { hex: '00' }), read],
  'PING on a stream': [raw(PING, { stream: 1, hex: '0000000000000000' }), read],
  '2,000 PING': [raw(PING, { hex: '0000000000000000', times: 2000 }), read],
  '2,000 PING answers': [raw(PING, { flags: 1, hex: '0000000000000000', times: 2000 }), read],
  'unknown frame': [raw(0xfe, { stream: 1, text: HIDDEN }), read],
  'unknown frame inside a header block': [{ ...read, endHeaders: false }, raw(0xfe, { text: 'x' })],
  ALTSVC: [raw(10, { hex: '0000' }), read],
  ORIGIN: [raw(12, { hex: '0000' }), read],
  'all flags of HEADERS': [raw(HEADERS, { stream: 1, flags: 0xff, text: 'x' }), { ...read, stream: 3 }],
  'HEADERS of no bytes': [raw(HEADERS, { stream: 1, flags: 5 }), { ...read, stream: 3 }],
  'a frame longer than allowed': [raw(0xfe, { text: 'x'.repeat(20_000) }), read],
  'a frame that announces more than it has': [raw(0xfe, { text: 'x', lengthBytes: 50 }), read],
  'a frame that announces less than it has': [raw(0xfe, { text: HIDDEN, lengthBytes: 1 }), read],
  'HTTP/1.1 behind the request': [read, { kind: 'bytes', text: HIDDEN }],
  'HTTP/1.1 before the request': [{ kind: 'bytes', text: HIDDEN }, read],
  'a second preface': [{ kind: 'bytes', text: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }, read],
});

/** Bytes of SETTINGS (RFC 9113 section 6.5.2). */
const SETTINGS_PAYLOADS = named({
  'table size 0': '000100000000',
  'table size 2^32 - 1': '0001ffffffff',
  'push 1': '000200000001',
  'push 2': '000200000002',
  'no streams': '000300000000',
  'window 0': '000400000000',
  'window 1': '000400000001',
  'window 2^31': '000480000000',
  'frame size 1': '000500000001',
  'frame size 2^24': '000501000000',
  'header list 0': '000600000000',
  'header list 1': '000600000001',
  'extended CONNECT 1': '000800000001',
  'extended CONNECT 2': '000800000002',
  'no RFC 7540 priorities': '000900000001',
  unknown: 'fefe00000001',
  'two windows': '000400000000000400ffffff',
  'five bytes': '0004000000',
  'one byte': '00',
  '300 unknown': 'fefe00000001'.repeat(300),
});
const settings = SETTINGS_PAYLOADS.flatMap(([name, hex]) =>
  named<readonly FrameText[]>({
    before: [raw(SETTINGS, { hex }), read],
    behind: [read, raw(SETTINGS, { hex })],
  }).map(
    ([where, frames]): Http2Case => ({
      ...about(`SETTINGS, ${name}, ${where} the request`, 'settings'),
      signs: SIGNS_READ,
      frames,
    }),
  ),
);
const oddSettings = named<readonly FrameText[]>({
  'SETTINGS on a stream': [raw(SETTINGS, { stream: 1 }), read],
  'SETTINGS answer with a payload': [raw(SETTINGS, { flags: 1, hex: '000400000000' }), read],
  '1,000 SETTINGS': [raw(SETTINGS, { hex: '00010000ffff', times: 1000 }), read],
  '1,000 empty SETTINGS': [raw(SETTINGS, { times: 1000 }), read],
  '1,000 SETTINGS answers': [raw(SETTINGS, { flags: 1, times: 1000 }), read],
  'window 0, then 1, then 0': [
    raw(SETTINGS, { hex: '000400000000' }),
    read,
    raw(SETTINGS, { hex: '000400000001' }),
    raw(SETTINGS, { hex: '000400000000' }),
  ],
});

const aroundRead = [...AROUND_READ, ...oddSettings].map(
  ([name, frames]): Http2Case => ({ ...about(name, 'frames'), signs: SIGNS_READ, frames }),
);

/** Around a signed POST with the body `order`. */
const AROUND_CREATE = named<readonly FrameText[]>({
  'DATA never ended': [create, { kind: 'data', text: 'order' }],
  'DATA, then reset': [create, { kind: 'data', text: 'order' }, raw(RESET, { stream: 1, hex: '00000008' })],
  'DATA, then GOAWAY': [create, { kind: 'data', text: 'order' }, raw(GOAWAY, { hex: '0000000000000000' })],
  'DATA ended twice': [create, { kind: 'data', text: 'order', endStream: true }, hidden()],
  'ended DATA, then HEADERS': [
    create,
    { kind: 'data', text: 'order', endStream: true },
    { ...read, stream: 1 },
  ],
  'HEADERS in the middle, not ended': [
    create,
    { kind: 'data', text: 'ord' },
    { kind: 'headers', lines: [['x-a', 'b']] },
    { kind: 'data', text: 'er', endStream: true },
  ],
  'a whole request as trailers': [create, { kind: 'data', text: 'order' }, { ...read, stream: 1 }],
  'two trailers': [
    create,
    { kind: 'data', text: 'order' },
    { kind: 'headers', lines: [['x-a', 'b']], endStream: true },
    { kind: 'headers', lines: [['x-a', 'c']], endStream: true },
  ],
  'padding 0': [create, { kind: 'data', text: 'order', padding: 0, endStream: true }],
  'padding 255': [create, { kind: 'data', text: 'order', padding: 255, endStream: true }],
  'padding longer than the frame': [create, raw(DATA, { stream: 1, flags: 9, hex: 'ff6f72646572' })],
  'padding exactly the frame': [create, raw(DATA, { stream: 1, flags: 9, hex: '056f72646572' })],
  'padded and empty': [create, raw(DATA, { stream: 1, flags: 9 })],
  'padding that is a request': [
    create,
    raw(DATA, { stream: 1, flags: 9, text: `\x40order${HIDDEN.slice(0, 64)}` }),
  ],
  'padded HEADERS': [
    { ...create, padding: 200 },
    { kind: 'data', text: 'order', endStream: true },
  ],
  'END_STREAM at HEADERS, then DATA': [
    { kind: 'headers', lines: CREATE, endStream: true },
    { kind: 'data', text: 'order', endStream: true },
  ],
  'unknown frames between DATA': [
    create,
    { kind: 'data', text: 'or' },
    raw(0xfe, { stream: 1, text: HIDDEN }),
    { kind: 'data', text: 'der', endStream: true },
  ],
  'unknown flags of DATA': [create, raw(DATA, { stream: 1, flags: 0x81, text: 'order' })],
  'DATA of another stream between': [
    create,
    { kind: 'data', text: 'or' },
    { kind: 'data', text: HIDDEN, stream: 3 },
    { kind: 'data', text: 'der', endStream: true },
  ],
  '1,000 empty DATA': [
    create,
    raw(DATA, { stream: 1, times: 1000 }),
    { kind: 'data', text: 'order', endStream: true },
  ],
  'DATA that announces more': [create, raw(DATA, { stream: 1, flags: 1, text: 'order', lengthBytes: 200 })],
  'DATA that announces less': [
    create,
    raw(DATA, { stream: 1, flags: 1, text: `order${HIDDEN}`, lengthBytes: 5 }),
  ],
});
const aroundCreate = AROUND_CREATE.map(
  ([name, frames]): Http2Case => ({
    ...about(`POST, ${name}`, 'frames'),
    signs: [{ route: 'createOrder', body: 'order' }],
    frames,
  }),
);

const splits = [1, 2, 3, 5, 8, 16, 50, 100, 300].flatMap((splitBytes): readonly Http2Case[] =>
  [undefined, 0, 100].map((padding) => ({
    ...about(`CONTINUATION each ${splitBytes} bytes, padding ${padding ?? 'none'}`, 'continuation'),
    signs: SIGNS_READ,
    frames: [{ ...read, splitBytes, ...(padding === undefined ? {} : { padding }) }],
  })),
);

/** Without the preface that the attacker writes otherwise. */
const PREFACES = named<readonly FrameText[]>({
  'no preface': [raw(SETTINGS), read],
  'preface without SETTINGS': [{ kind: 'bytes', text: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }, read],
  'preface in lower case': [{ kind: 'bytes', text: 'pri * http/2.0\r\n\r\nsm\r\n\r\n' }, raw(SETTINGS), read],
  'preface with LF': [{ kind: 'bytes', text: 'PRI * HTTP/2.0\n\nSM\n\n' }, raw(SETTINGS), read],
  'preface of HTTP/2.1': [{ kind: 'bytes', text: 'PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n' }, raw(SETTINGS), read],
  'preface with headers': [
    { kind: 'bytes', text: `PRI * HTTP/2.0\r\nHost: api.shop.example\r\n\r\nSM\r\n\r\n` },
    raw(SETTINGS),
    read,
  ],
  'preface behind CRLF': [
    { kind: 'bytes', text: '\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' },
    raw(SETTINGS),
    read,
  ],
  'half a preface, then a request': [{ kind: 'bytes', text: `PRI * HTTP/2.0\r\n\r\n${HIDDEN}` }],
  'a request, then the preface': [
    {
      kind: 'bytes',
      text: 'GET /v1/orders/4711 HTTP/1.1\r\nHost: api.shop.example\r\n{proof}\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    },
    raw(SETTINGS),
    read,
  ],
  'the preface as a body': [
    {
      kind: 'bytes',
      text: 'GET /v1/orders/4711 HTTP/1.1\r\nHost: api.shop.example\r\n{proof}Content-Length: 24\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    },
    raw(SETTINGS),
  ],
});
const prefaces = PREFACES.map(
  ([name, frames]): Http2Case => ({ ...about(name, 'preface'), signs: SIGNS_READ, frames, bare: true }),
);

export const FRAMES: readonly Http2Case[] = [
  ...aroundRead,
  ...settings,
  ...aroundCreate,
  ...splits,
  ...prefaces,
];
