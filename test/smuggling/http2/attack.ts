/** Writes one HTTP/2 case and collects the answers of its streams, without a library that would correct anything. */

import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { openSocket } from '../../../src/tools/conformance/wire/http1.ts';
import type { FrameText, Http2Case } from '../../support/hostile/cases.ts';
import type { Answers } from '../../support/hostile/http1-attack.ts';
import {
  encodeFrame,
  encodeFrameText,
  FLAG,
  PREFACE,
  readFrames,
  TYPE,
} from '../../support/hostile/http2-frames.ts';
import type { Template } from '../../support/hostile/template.ts';

/** How long a connection may be silent before a case counts as answered. */
const QUIET_MS = 250;

const frameOf = (type: number, hex = '', flags = 0) =>
  encodeFrame({ type, flags, stream: 0, payload: Buffer.from(hex, 'hex') });
/** SETTINGS_MAX_FRAME_SIZE and a large initial window, so that answers are never held back. */
const HELLO = Buffer.concat([PREFACE, frameOf(TYPE.settings, '000400ffffff')]);

export function attackHttp2(address: WireAddress, one: Http2Case, template: Template): Promise<Answers> {
  return new Promise((resolve) => {
    const socket = openSocket(address, 'h2');
    const byStream = new Map<number, Buffer>();
    const open = new Set(streamsOf(one.frames));
    let pending = Buffer.alloc(0);
    let isOver = false;
    const finish = () => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      socket.destroy();
      resolve({ byStream });
    };
    const timer = setTimeout(finish, QUIET_MS);
    socket.on('data', (chunk: Buffer) => {
      timer.refresh();
      const { frames, lengthBytes } = readFrames(Buffer.concat([pending, chunk]));
      pending = Buffer.concat([pending, chunk]).subarray(lengthBytes);
      for (const { flags, payload, stream, type } of frames) {
        if (type === TYPE.data) {
          byStream.set(stream, Buffer.concat([byStream.get(stream) ?? Buffer.alloc(0), payload]));
        }
        if (type === TYPE.settings && (flags & FLAG.ack) === 0) {
          socket.write(frameOf(TYPE.settings, '', FLAG.ack));
        }
        const ends = type === TYPE.data || type === TYPE.headers;
        if (type === TYPE.reset || (ends && (flags & FLAG.endStream) !== 0)) open.delete(stream);
      }
      if (open.size === 0) finish();
    });
    socket.on('error', finish);
    socket.on('close', finish);
    if (one.bare !== true) socket.write(HELLO);
    for (const frame of one.frames) socket.write(encodeFrameText(frame, template));
  });
}

/** Those that the case opens. A case that opens none waits for silence. */
function streamsOf(frames: readonly FrameText[]): readonly number[] {
  const streams = frames.flatMap((frame) => (frame.kind === 'headers' ? [frame.stream ?? 1] : []));
  return streams.length === 0 ? [-1] : streams;
}
