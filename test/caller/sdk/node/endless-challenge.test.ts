/** A 401 that asks for a DPoP nonce, with a body that never ends: the request is repeated, and its connection given up. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Agent, request } from 'undici';
import { Signer } from '../../../../src/caller/sdk/index.ts';
import { writeUpstreamKey } from './upstream-key.ts';
import { type Behaviour, Upstream } from './upstreams.ts';

let upstream: Upstream;
let keyFile: string;
beforeAll(async () => {
  upstream = await Upstream.start();
  keyFile = writeUpstreamKey([upstream.origin]);
});
afterAll(() => upstream.close());

const asking = (pieceBytes: number): Behaviour => ({
  kind: 'endless',
  status: 401,
  headers: {
    'www-authenticate': 'DPoP error="use_dpop_nonce"',
    'dpop-nonce': 'abc',
    date: new Date().toUTCString(),
  },
  pieceBytes,
});

type Send = (signer: Signer, signal?: AbortSignal) => Promise<number>;
const byFetch: Send = async (signer, signal) =>
  (await signer.fetch(`${upstream.origin}/v1/a`, signal === undefined ? {} : { signal })).status;
const byInterceptor: Send = async (signer, signal) => {
  const agent = new Agent({ connections: 1 });
  try {
    const dispatcher = agent.compose(signer.interceptor());
    const options = signal === undefined ? { dispatcher } : { dispatcher, signal };
    const { body, statusCode } = await request(`${upstream.origin}/v1/a`, options);
    await body.dump();
    return statusCode;
  } finally {
    await agent.destroy();
  }
};

describe.each([
  ['fetch', byFetch],
  ['the interceptor', byInterceptor],
] as const)('%s', (_, send) => {
  it.each([1, 50_000])('repeats the request beside pieces of %d bytes', async (pieceBytes) => {
    const signer = await Signer.open({ keyFile, proof: 'dpop' });
    upstream.arrived.length = 0;
    upstream.behaviours = [asking(pieceBytes)];
    expect(await send(signer)).toBe(200);
    expect(new Set(upstream.jtis).size).toBe(2);
  });

  it('sends nothing more for a caller that has gone', async () => {
    const signer = await Signer.open({ keyFile, proof: 'dpop' });
    upstream.arrived.length = 0;
    const caller = new AbortController();
    upstream.behaviours = [asking(1)];
    upstream.respond = () => {
      caller.abort();
      return undefined;
    };
    await expect(send(signer, caller.signal)).rejects.toThrow();
    upstream.respond = undefined;
    expect(upstream.arrived).toHaveLength(1);
  });
});
