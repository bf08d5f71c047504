/** Tests the order of handshakes, and the pause after a costly one. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { HandshakeQueue, networkOf } from '../../../src/process/connections/handshake-queue.ts';
import { waitFor } from '../../support/wait.ts';

let nowMs: number;
let done: string[];
let queue: HandshakeQueue;

beforeEach(() => {
  nowMs = 0;
  done = [];
  queue = new HandshakeQueue(() => nowMs);
});

/** A handshake that takes a time. */
function take(address: string | undefined, name: string, spentMs: number): void {
  queue.run(address, () => {
    done.push(name);
    nowMs += spentMs;
  });
}

function allOf(count: number): Promise<true> {
  return waitFor('all handshakes', async () => (done.length === count ? true : undefined));
}

it('processes ordinary handshakes at once', () => {
  for (const name of ['a', 'b', 'c']) take('192.0.2.1', name, 2);
  expect(done).toEqual(['a', 'b', 'c']);
});

it('lets all handshakes wait after a costly one, and then serves networks round robin', async () => {
  for (const name of ['a1', 'a2', 'a3']) take('192.0.2.1', name, 20);
  take('192.0.2.2', 'b1', 2);
  take('192.0.2.2', 'b2', 2);
  take(undefined, 'c1', 2);
  expect(done).toEqual(['a1']);
  await allOf(6);
  expect(done).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
});

it('processes handshakes at once again after the pause', async () => {
  take('192.0.2.1', 'a1', 20);
  take('192.0.2.1', 'a2', 2);
  await allOf(2);
  take('192.0.2.1', 'a3', 2);
  expect(done).toEqual(['a1', 'a2', 'a3']);
});

it('goes on with the next handshake after one that throws', async () => {
  const fail = () => {
    nowMs += 20;
    throw new Error('a faulty handshake');
  };
  expect(() => queue.run('192.0.2.1', fail)).toThrow('a faulty handshake');
  take('192.0.2.1', 'a2', 2);
  await allOf(1);
});

describe('networks', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['1::2:3:4:5:6:7', '1:0:2:3'],
    ['', ''],
  ])('%s is of %s', (address, network) => expect(networkOf(address)).toBe(network));
});
