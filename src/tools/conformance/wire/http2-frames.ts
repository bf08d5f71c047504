/**
 * A connection for node:http2 that sends given header blocks. Node's API rejects repeated `authorization`, unknown pseudo
 * headers and the like before they reach the wire. Here Node writes a placeholder, and this stream replaces it with the wanted
 * lines. Node does everything else, including the decoding of the response.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { HeaderLine } from './exchange.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const frameHeaderBytes = 9;
const maxFramePayloadBytes = 16_384;
const typeHeaders = 0x1;
const typeContinuation = 0x9;
const flagEndStream = 0x1;
const flagEndHeaders = 0x4;

/** Header blocks are sent in this order: the request's, then the trailers'. Each connection carries one request. */
export class HeaderReplacingStream extends Duplex {
  readonly #socket: Socket;
  readonly #blocks: (readonly HeaderLine[])[];
  #pending: Buffer = Buffer.alloc(0);
  #prefaceSent = false;

  constructor(socket: Socket, blocks: readonly (readonly HeaderLine[])[]) {
    super();
    this.#socket = socket;
    this.#blocks = [...blocks];
    socket.on('data', (chunk: Buffer) => this.push(chunk));

    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    this.#socket.write(Buffer.concat(this.#takeFrames()), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #takeFrames(): Buffer[] {
    const out: Buffer[] = [];
    if (!this.#prefaceSent) {
      if (this.#pending.length < preface.length) return out;
      this.#prefaceSent = true;
      out.push(this.#take(preface.length));
    }
    while (this.#pending.length >= frameHeaderBytes) {
      const frameBytes = frameHeaderBytes + this.#pending.readUIntBE(0, 3);
      if (this.#pending.length < frameBytes) break;
      const frame = this.#take(frameBytes);
      out.push(frame.readUInt8(3) === typeHeaders ? this.#replace(frame) : frame);
    }
    return out;
  }

  #take(lengthBytes: number): Buffer {
    const taken = this.#pending.subarray(0, lengthBytes);
    this.#pending = this.#pending.subarray(lengthBytes);
    return taken;
  }

  #replace(frame: Buffer): Buffer {
    const lines = this.#blocks.shift();
    if (lines === undefined) throw new Error('more header blocks than were given');
    return headerFrames(frame.readUInt32BE(5), (frame.readUInt8(4) & flagEndStream) !== 0, lines);
  }
}

function headerFrames(streamId: number, endStream: boolean, lines: readonly HeaderLine[]): Buffer {
  const block = Buffer.concat(lines.map(encodeLine));
  const frames: Buffer[] = [];
  for (let offset = 0; offset === 0 || offset < block.length; offset += maxFramePayloadBytes) {
    const payload = block.subarray(offset, offset + maxFramePayloadBytes);
    const last = offset + maxFramePayloadBytes >= block.length;
    const head = Buffer.alloc(frameHeaderBytes);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(offset === 0 ? typeHeaders : typeContinuation, 3);
    head.writeUInt8((offset === 0 && endStream ? flagEndStream : 0) | (last ? flagEndHeaders : 0), 4);
    head.writeUInt32BE(streamId, 5);
    frames.push(head, payload);
  }
  return Buffer.concat(frames);
}

/** RFC 7541, 6.2.2: a literal without indexing, name and value spelled out; the peer's table is never touched. */
function encodeLine([name, value]: HeaderLine): Buffer {
  return Buffer.concat([Buffer.of(0), encodeString(name), encodeString(value)]);
}

/** RFC 7541, 5.2: not Huffman-coded, the length an integer with a prefix of seven bits. */
function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}
