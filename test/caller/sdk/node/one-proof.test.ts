/** One proof, one delivery: what an upstream gets that fails on a reused connection. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Agent, interceptors, request } from 'undici';
import { Signer } from '../../../../src/caller/sdk/index.ts';
import { PROOF_FORMATS } from '../../../../src/protocol/proof-format.ts';
import { writeUpstreamKey } from './upstream-key.ts';
import { FAULTS, Upstream } from './upstreams.ts';

let upstream: Upstream;
let signer: Signer;
let keyFile: string;
beforeAll(async () => {
  upstream = await Upstream.start();
  keyFile = writeUpstreamKey([upstream.origin]);
  signer = await Signer.open({ keyFile });
});
afterAll(() => upstream.close());

const METHODS = ['GET', 'POST', 'PUT'] as const;

type Send = (method: (typeof METHODS)[number]) => Promise<unknown>;

const inits = (method: string) => ({
  method,
  headers: { 'idempotency-key': 'k' },
  ...(method !== 'GET' && { body: 'x'.repeat(200_000) }),
});
const byFetch: Send = async (method) =>
  (await signer.fetch(`${upstream.origin}/v1/a`, inits(method))).arrayBuffer();
const byInterceptor: Send = async (method) => {
  const agent = new Agent();
  const dispatcher = agent.compose(
    signer.interceptor(),
    interceptors.retry({ maxRetries: 2, minTimeout: 1, maxTimeout: 5, methods: [...METHODS] }),
  );
  try {
    const send = async () => {
      const { body } = await request(`${upstream.origin}/v1/a`, { ...inits(method), method, dispatcher });
      await body.dump();
    };
    await send();
    await send();
  } finally {
    await agent.destroy();
  }
};

describe.each([
  ['fetch', 'transcript-v1', byFetch],
  ['fetch', 'dpop', byFetch],
  ['the interceptor, with retries', 'transcript-v1', byInterceptor],
  ['the interceptor, with retries', 'dpop', byInterceptor],
] as const)('%s, %s', (_name, proof, send) => {
  beforeAll(async () => {
    signer = await Signer.open({ keyFile, proof });
  });

  it.each(FAULTS.flatMap((fault) => METHODS.map((method) => [method, ...fault] as const)))(
    '%s, and the upstream %s',
    async (method, _what, fault) => {
      upstream.arrived.length = 0;
      // A connection that is kept alive, and fails then. A request that the fault reaches is not sent again by itself.
      upstream.behaviours = [{ kind: 'answer', status: 200 }, fault, fault];
      for (let i = 0; i < 3; i++) await send(method).catch(() => undefined);
      expect(upstream.behaviours).toEqual([]);
      expect(upstream.jtis).not.toContain(undefined);
      expect(new Set(upstream.jtis).size).toBe(upstream.jtis.length);
    },
  );
});

it.each(PROOF_FORMATS)(
  'fetch signs the repetition after a 421 anew, with the same body: %s',
  async (proof) => {
    upstream.arrived.length = 0;
    upstream.behaviours = [{ kind: 'answer', status: 421 }];
    const answer = await (await Signer.open({ keyFile, proof })).fetch(`${upstream.origin}/v1/a`, {
      method: 'PUT',
      body: 'abc',
    });
    expect(answer.status).toBe(200);
    expect(upstream.arrived.map(({ body }) => body)).toEqual(['abc', 'abc']);
    const [first, second] = upstream.arrived.map(({ transcript }) => transcript);
    if (proof !== 'dpop') expect(first?.get('content-sha256')).toMatch(/.{43}/);
    expect(first?.get('jti')).toBeDefined();
    expect(first?.get('content-sha256')).toBe(second?.get('content-sha256'));
    expect(first?.get('jti')).not.toBe(second?.get('jti'));
  },
);

it('fetch fails when the repetition after a 421 cannot be sent', async () => {
  upstream.behaviours = [{ kind: 'answer', status: 421 }];
  const agent = new Agent();
  let attempts = 0;
  const dispatcher = {
    dispatch(...given: Parameters<Agent['dispatch']>): boolean {
      attempts += 1;
      if (attempts > 1) throw new Error('the dispatcher is closed');
      return agent.dispatch(...given);
    },
  };
  try {
    const init = { method: 'PUT', body: 'abc', dispatcher } as RequestInit;
    await expect(signer.fetch(`${upstream.origin}/v1/a`, init)).rejects.toThrow();
    expect(attempts).toBe(2);
  } finally {
    await agent.destroy();
  }
});
