/** Writes the frames of a case as bytes (RFC 9113 section 4.1), valid or not, and reads the frames of an answer. */
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import type { FrameText } from './cases.ts';
import type { Template } from './template.ts';

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const TYPE = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  continuation: 9,
} as const;
export const FLAG = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** @param lengthBytes announced, where that is not the payload's length */
export function encodeFrame({ type, flags, stream, payload }: Frame, lengthBytes = payload.length): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(lengthBytes, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** The whole frames at the start of `bytes`, and how many bytes they take. */
export function readFrames(bytes: Buffer): {
  readonly frames: readonly Frame[];
  readonly lengthBytes: number;
} {
  const frames: Frame[] = [];
  let offset = 0;
  while (bytes.length >= offset + 9) {
    const end = offset + 9 + bytes.readUIntBE(offset, 3);
    if (bytes.length < end) break;
    frames.push({
      type: bytes.readUInt8(offset + 3),
      flags: bytes.readUInt8(offset + 4),
      stream: bytes.readUInt32BE(offset + 5) & 0x7fffffff,
      payload: bytes.subarray(offset + 9, end),
    });
    offset = end;
  }
  return { frames, lengthBytes: offset };
}

export function encodeFrameText(frame: FrameText, template: Template): Buffer {
  const latin1 = (text: string) => Buffer.from(template.fill(text), 'latin1');
  switch (frame.kind) {
    case 'bytes':
      return latin1(frame.text);
    case 'raw': {
      const payload = frame.hex === undefined ? latin1(frame.text ?? '') : Buffer.from(frame.hex, 'hex');
      const { type, flags = 0, stream = 0, lengthBytes, times = 1 } = frame;
      const one = encodeFrame({ type, flags, stream, payload }, lengthBytes);
      return Buffer.concat(Array.from({ length: times }, () => one));
    }
    case 'data': {
      const { stream = 1, endStream = false, padding } = frame;
      const flags = (endStream ? FLAG.endStream : 0) | (padding === undefined ? 0 : FLAG.padded);
      return encodeFrame({ type: TYPE.data, flags, stream, payload: padded(latin1(frame.text), padding) });
    }
    case 'headers':
      return encodeHeaders(frame, template);
  }
}

function padded(payload: Buffer, padding: number | undefined): Buffer {
  return padding === undefined
    ? payload
    : Buffer.concat([Buffer.of(padding), payload, Buffer.alloc(padding)]);
}

function encodeHeaders(frame: FrameText & { readonly kind: 'headers' }, template: Template): Buffer {
  const { stream = 1, endStream = false, endHeaders = true, padding, dependsOn } = frame;
  const block = headerBlock(frame, template);
  const priority = Buffer.alloc(dependsOn === undefined ? 0 : 5, 15);
  if (dependsOn !== undefined) priority.writeUInt32BE(dependsOn, 0);
  const splitBytes = frame.splitBytes ?? 16_000;
  const parts: Buffer[] = [];
  for (let offset = 0; offset === 0 || offset < block.length; offset += splitBytes) {
    parts.push(block.subarray(offset, offset + splitBytes));
  }
  return Buffer.concat(
    parts.map((part, index) => {
      const isFirst = index === 0;
      const flags =
        (endHeaders && index === parts.length - 1 ? FLAG.endHeaders : 0) |
        (isFirst && endStream ? FLAG.endStream : 0) |
        (isFirst && padding !== undefined ? FLAG.padded : 0) |
        (isFirst && dependsOn !== undefined ? FLAG.priority : 0);
      const payload = isFirst ? padded(Buffer.concat([priority, part]), padding) : part;
      return encodeFrame({ type: isFirst ? TYPE.headers : TYPE.continuation, flags, stream, payload });
    }),
  );
}

function headerBlock(frame: FrameText & { readonly kind: 'headers' }, template: Template): Buffer {
  const { coding = 'literal', hpackAfter = '', hpackBefore = '', lines } = frame;
  return Buffer.concat([
    Buffer.from(hpackBefore, 'hex'),
    ...linesOf(lines, template).map(([name, value]) =>
      Buffer.concat([Buffer.of(CODING[coding]), encodeString(name), encodeString(value)]),
    ),
    Buffer.from(hpackAfter, 'hex'),
  ]);
}

/** First byte of a literal with a literal name (RFC 7541 section 6.2). */
const CODING = { literal: 0x00, never_indexed: 0x10, indexed: 0x40 } as const;

function linesOf(lines: readonly HeaderLine[], template: Template): readonly HeaderLine[] {
  return lines.flatMap(
    ([name, value]) => template.proofLines(name) ?? [[template.fill(name), template.fill(value)] as const],
  );
}

/** RFC 7541 section 5.2, without the Huffman code. */
function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}
