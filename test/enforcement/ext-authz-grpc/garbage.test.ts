/**
 * Tests bytes that are not a CheckRequest and connections that do not speak gRPC: they never cause an allow and never stop the
 * ext_authz server.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type ExtAuthzServer,
  openExtAuthzServer,
} from '../../../src/enforcement/ext-authz-grpc/ext-authz-server.ts';
import { createVerifierMetrics } from '../../../src/verifier/verifier-metrics.ts';
import { mergedCheckRequest, rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { signRequest, withoutHeader } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import {
  type CheckClient,
  encodeCheckRequest,
  openCheckClient,
  outcomeOfResponse,
} from '../../support/harness/check-client.ts';
import { Random, TEXT_CHANGES, type TextChange } from '../../support/random.ts';

const keys = newSiteKeys();
const seed = Number(process.env.PROOFGATE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
const random = new Random(seed);
const internalErrors: unknown[] = [];
let extAuthz: ExtAuthzServer;
let client: CheckClient;

beforeAll(async () => {
  const snapshot = await compileSite(siteContent(keys));
  const { verifier } = createTestVerifier({
    snapshot,
    onInternalError: (error) => internalErrors.push(error),
  });
  extAuthz = await openExtAuthzServer({
    verifier,
    metrics: createVerifierMetrics(() => undefined),
    bodyMode: 'buffered',
    listen: '127.0.0.1:0',
    maxMessageBytes: 4 * 1024 * 1024,
    onInternalError: (error) => internalErrors.push(error),
  });
  client = openCheckClient(extAuthz.address);
});

afterAll(async () => {
  client.close();
  await extAuthz.drain(0);
});

async function expectServes(): Promise<void> {
  const { wire } = signRequest(keys, { caller: 'billing', route: 'everything' });
  expect(outcomeOfResponse(await client.check(rawCheckRequest(wire)))).toBe('allowed');
  expect(internalErrors).toEqual([]);
}

/** Every one an OK RPC with a denial in it. */
async function expectDenied(messages: readonly Buffer[]): Promise<void> {
  for (let at = 0; at < messages.length; at += 50) {
    await Promise.all(
      messages.slice(at, at + 50).map(async (bytes) => {
        const found = outcomeOfResponse(await client.checkBytes(bytes));
        const isDenied = / (401|403|503)$/.test(found);
        expect({ seed, bytes: bytes.subarray(0, 500).toString('hex'), found, isDenied }).toMatchObject({
          isDenied: true,
        });
      }),
    );
  }
}

const randomBytes = (length: number) => Buffer.from(Array.from({ length }, () => random.below(256)));

describe('messages', () => {
  it('of random bytes', async () => {
    await expectDenied(Array.from({ length: 1500 }, () => randomBytes(random.below(120))));
    await expectServes();
  });

  it('that were a request without a passport', async () => {
    const { wire } = signRequest(keys, { caller: 'billing', route: 'everything' });
    const anonymous = withoutHeader(wire, 'authorization');
    const forms = [rawCheckRequest(anonymous), mergedCheckRequest(anonymous)].map(encodeCheckRequest);
    const changes = Object.keys(TEXT_CHANGES) as TextChange[];
    const messages = Array.from({ length: 3000 }, () => {
      let text = random.pick(forms).toString('latin1');
      for (let time = random.below(4); time >= 0; time -= 1) {
        text = TEXT_CHANGES[random.pick(changes)](text, random);
      }
      return Buffer.from(text, 'latin1');
    });
    await expectDenied(messages);
    await expectServes();
  });

  it('that go deep or promise much', async () => {
    const nested = (levels: number) => {
      let bytes: Buffer = Buffer.alloc(0);
      for (let level = 0; level < levels; level += 1) {
        bytes = Buffer.concat([Buffer.from([0x0a]), varint(bytes.byteLength), bytes]);
      }
      return bytes;
    };
    await expectDenied([
      Buffer.alloc(1_000_000, 0x0b),
      Buffer.alloc(1_000_000, 0x0c),
      Buffer.alloc(1_000_000, 0xff),
      Buffer.alloc(1_000_000),
      nested(2000),
      Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
      Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
      // A million empty header lines.
      encodeCheckRequest({
        attributes: { request: { http: { header_map: { headers: new Array(1_000_000).fill({}) } } } },
      }),
    ]);
    await expectServes();
  });
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest <= 0x7f) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

describe('connections', () => {
  const open: Socket[] = [];

  afterAll(() => {
    for (const socket of open) socket.destroy();
  });

  async function connected(): Promise<Socket> {
    const [host, port] = extAuthz.address.split(':');
    const socket = connect(Number(port), host);
    open.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  }

  const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const CLIENT_HELLO = Buffer.from(
    `16030100a6010000a20303${'5a'.repeat(32)}20${'a5'.repeat(32)}0002130101000057${'00'.repeat(87)}`,
    'hex',
  );
  const settings = Buffer.from('000000040000000000', 'hex');
  const hugeFrame = Buffer.from('ffffff000000000001', 'hex');

  it.each<[string, Buffer]>([
    ['a request of HTTP/1.1', Buffer.from('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['a ClientHello', CLIENT_HELLO],
    ['random bytes', randomBytes(4096)],
    ['the preface and random bytes', Buffer.concat([PREFACE, randomBytes(4096)])],
    ['settings and random frames', Buffer.concat([PREFACE, settings, randomBytes(4096)])],
    ['a frame that is too large', Buffer.concat([PREFACE, settings, hugeFrame])],
    ['half a preface, and the end', PREFACE.subarray(0, 10)],
  ])('%s', async (_, bytes) => {
    const socket = await connected();
    socket.end(bytes);
    socket.resume();
    await expectServes();
    socket.destroy();
    await expectServes();
  });

  it('that say nothing', async () => {
    const socket = await connected();
    await expectServes();
    expect(socket.destroyed).toBe(false);
  });

  it('200 of them, of which half break off', async () => {
    const sockets = await Promise.all(Array.from({ length: 200 }, connected));
    for (const [number, socket] of sockets.entries()) {
      socket.write(number % 3 === 0 ? PREFACE : randomBytes(50));
      if (number % 2 === 0) socket.resetAndDestroy();
    }
    await expectServes();
    for (const socket of sockets) socket.destroy();
    await expectServes();
  });
});
