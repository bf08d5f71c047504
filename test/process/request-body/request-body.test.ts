import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { BodySpace } from '../../../src/process/request-body/body-space.ts';
import { GrowingBuffer } from '../../../src/process/request-body/growing-buffer.ts';
import { readBody } from '../../../src/process/request-body/read-body.ts';

describe('space', () => {
  it('gives one caller a quarter, and the others the rest', () => {
    const space = new BodySpace({ maxBytes: 400, maxBodyBytes: 10 });
    const first = space.open('a');
    expect(first.atLeast(100)).toBe(true);
    expect(first.atLeast(101)).toBe(false);
    expect(space.open('a').atLeast(1)).toBe(false);
    for (const caller of ['b', 'c', 'd']) expect(space.open(caller).atLeast(100)).toBe(true);
    expect(space.open('e').atLeast(1)).toBe(false);
    first.release();
    first.release();
    expect(space.open('e').atLeast(100)).toBe(true);
    expect(space.open('a').atLeast(1)).toBe(false);
  });

  it('has room for one body of each caller, where a quarter is less', () => {
    const space = new BodySpace({ maxBytes: 100, maxBodyBytes: 90 });
    expect(space.open('a').atLeast(90)).toBe(true);
    expect(space.open('a').atLeast(1)).toBe(false);
    expect(space.open('b').atLeast(10)).toBe(true);
    expect(space.open('c').atLeast(1)).toBe(false);
  });

  it('reports its changes, and nothing for a refusal', () => {
    const changes: number[] = [];
    const space = new BodySpace({ maxBytes: 8, maxBodyBytes: 8, onChange: (bytes) => changes.push(bytes) });
    const held = space.open('a');
    held.atLeast(3);
    held.atLeast(2);
    held.atLeast(5);
    held.atLeast(9);
    held.release();
    expect(changes).toEqual([3, 2, -5]);
  });

  it('denies what is no number', () => {
    expect(new BodySpace({ maxBytes: 8, maxBodyBytes: 8 }).open('a').atLeast(Number.NaN)).toBe(false);
  });
});

describe('growing buffer', () => {
  it('holds what was appended, in at most twice its size', () => {
    const buffer = new GrowingBuffer();
    for (let count = 0; count < 100_000; count += 1) buffer.append(Buffer.from([count % 251]));
    const bytes = buffer.bytes();
    expect(bytes.length).toBe(100_000);
    expect(bytes.every((byte, index) => byte === index % 251)).toBe(true);
    expect(bytes.buffer.byteLength).toBeLessThanOrEqual(2 * 100_000);
  });

  it('keeps no part of the buffer that a chunk was cut from', () => {
    const buffer = new GrowingBuffer();
    const long = Buffer.alloc(65_536, 1);
    buffer.append(long.subarray(10, 12));
    long.fill(2);
    expect([...buffer.bytes()]).toEqual([1, 1]);
  });
});

describe('reading', () => {
  it('refuses one of two bodies that arrive in turns, and takes the other', async () => {
    const space = new BodySpace({ maxBytes: 40, maxBodyBytes: 10 });
    const [first, second] = [new PassThrough(), new PassThrough()];
    const reads = [first, second].map((stream) => readBody(stream, 10, space.open('a')));
    // As two connections give their chunks within one turn of the event loop.
    for (let bytes = 0; bytes < 8; bytes += 1) {
      first.emit('data', Buffer.from('1'));
      second.emit('data', Buffer.from('2'));
    }
    second.emit('end');
    expect(await Promise.all(reads)).toEqual([
      { kind: 'no_room' },
      { kind: 'read', bytes: Buffer.from('22222222') },
    ]);
  });
});
