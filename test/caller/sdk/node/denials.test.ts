/** What the SDK says of a denial beyond its code: a repeated proof, and a wrong clock. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { denialOf, Signer } from '../../../../src/caller/sdk/index.ts';
import { writeUpstreamKey } from './upstream-key.ts';

const DENIALS: { readonly [reason: string]: number } = { jti_replay: 403, invalid_request_proof: 401 };

let server: Server;
let origin = '';
let offsetMs = 0;
beforeAll(async () => {
  server = createServer(async (request, response) => {
    await request.resume().toArray();
    const [, , , reason = '', detail] = (request.url ?? '').split('/');
    response.setHeader('date', new Date(Date.now() + offsetMs).toUTCString());
    response.setHeader('x-proofgate-reason', reason);
    response.setHeader('content-type', 'application/problem+json');
    response.writeHead(DENIALS[reason] ?? 200).end(JSON.stringify({ detail }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function denialAt(path: string, body: 'bound' | 'unbound' = 'bound', init?: RequestInit) {
  const signer = await Signer.open({
    keyFile: writeUpstreamKey([origin], body),
    onWarning: () => undefined,
  });
  return denialOf(await signer.fetch(`${origin}/v1/denied/${path}`, init));
}

it('says that a replayed request may have been executed', async () => {
  offsetMs = -60_000;
  const denial = await denialAt('jti_replay');
  expect(denial?.message).toMatch(/repeated this request.* may have been executed: ask the API/);
  expect(denial?.clockAheadSeconds).toBeUndefined();
});

describe('a clock', () => {
  it.each([
    [45, 'invalid_request_proof/proof_expired', -45, /4[456] s behind/],
    [-45, 'invalid_request_proof/proof_not_yet_valid', 45, /4[456] s ahead/],
    [-45, 'invalid_request_proof', 45, /4[456] s ahead/],
    [2, 'invalid_request_proof/proof_expired', undefined, /proof_expired$/],
  ])('%d s from the server: %s', async (seconds, path, ahead, text) => {
    offsetMs = seconds * 1000;
    const denial = await denialAt(path);
    if (ahead === undefined) expect(denial?.clockAheadSeconds).toBeUndefined();
    else expect(Math.abs((denial?.clockAheadSeconds ?? 0) - ahead)).toBeLessThanOrEqual(1);
    expect(denial?.message).toMatch(text);
  });

  it('that is behind is known without the time of sending', async () => {
    offsetMs = 45_000;
    const denial = await denialOf(await fetch(`${origin}/v1/denied/invalid_request_proof/proof_expired`));
    expect(denial?.clockAheadSeconds).toBeLessThan(-40);
  });
});

/** Node.js 24.14 makes a network error of a 401 for a body that it cannot send again, unless no credentials may be added. */
it('a 401 of a streamed body is the answer, and `fetch` may not repeat it', async () => {
  offsetMs = 0;
  const own = globalThis.fetch;
  const credentials: unknown[] = [];
  globalThis.fetch = (input, init) => {
    credentials.push(init?.credentials);
    return own(input, init);
  };
  try {
    const init = { method: 'POST', body: new Blob(['x']).stream(), duplex: 'half' } as RequestInit;
    const denial = await denialAt('invalid_request_proof/key_revoked', 'unbound', init);
    expect([denial?.status, denial?.detail]).toEqual([401, 'key_revoked']);
    await denialAt('invalid_request_proof/key_revoked', 'bound', { method: 'POST', body: 'x' });
  } finally {
    globalThis.fetch = own;
  }
  expect(credentials).toEqual(['omit', undefined]);
});
