/** Redirects that `fetch` and the interceptor follow: the table of all SDKs, `test/caller/sdk/redirects.json`. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Agent, interceptors, request } from 'undici';
import { type FollowPolicy, Signer, SignerError } from '../../../../src/caller/sdk/index.ts';
import { writeUpstreamKey } from './upstream-key.ts';
import { Upstream } from './upstreams.ts';

interface RedirectCase {
  readonly to: 'same' | 'other';
  readonly has_profile: boolean;
  readonly follow: FollowPolicy;
  readonly outcome: string;
}
const CASES: readonly RedirectCase[] = JSON.parse(
  readFileSync(new URL('../redirects.json', import.meta.url), 'utf8'),
);

let [server, elsewhere]: Upstream[] = [];
beforeEach(async () => {
  [server, elsewhere] = [await Upstream.start(), await Upstream.start()];
});
afterEach(() => {
  server?.close();
  elsewhere?.close();
});

type Send = (signer: Signer, url: string, init: { method: string; body?: string }) => Promise<number>;

const byFetch: Send = async (signer, url, init) => (await signer.fetch(url, init)).status;
const byInterceptor: Send = async (signer, url, { body = null, method }) => {
  const agent = new Agent();
  const dispatcher = agent.compose(signer.interceptor(), interceptors.redirect({ maxRedirections: 3 }));
  try {
    const answer = await request(url, { method: method === 'POST' ? 'POST' : 'GET', body, dispatcher });
    await answer.body.dump();
    return answer.statusCode;
  } finally {
    await agent.destroy();
  }
};

async function outcomeOf(sent: Promise<number>): Promise<number | string> {
  return sent.catch((error: unknown) => {
    if (error instanceof SignerError) return error.code;
    throw error;
  });
}

describe.each([
  ['fetch', byFetch],
  ['the interceptor', byInterceptor],
])('%s', (_name, send) => {
  it.each(CASES.flatMap((row) => [302, 307].map((status) => ({ ...row, status }))))(
    'after a $status to the $to origin, profile: $has_profile, follow: $follow: $outcome',
    async ({ follow, has_profile, outcome, status, to }) => {
      if (server === undefined || elsewhere === undefined) throw new Error('not started');
      const target = to === 'same' ? server : elsewhere;
      const path = to === 'same' && !has_profile ? '/new' : '/v1/new';
      server.respond = ({ line }) =>
        line.includes('/v1/old')
          ? { kind: 'answer', status, headers: { location: `${target.origin}${path}` } }
          : undefined;
      const origins = [server.origin, ...(to === 'other' && has_profile ? [elsewhere.origin] : [])];
      const signer = await Signer.open({ keyFile: writeUpstreamKey(origins), follow });
      const init = status === 307 ? { method: 'POST', body: 'data' } : { method: 'GET' };
      const ended = await outcomeOf(send(signer, `${server.origin}/v1/old`, init));
      if (outcome === 'signed') {
        expect(ended).toBe(200);
        const last = target.arrived.at(-1);
        expect(last?.body).toBe(init.body ?? '');
        expect(last?.transcript?.get('authority')).toBe(new URL(target.origin).host);
      } else {
        expect(ended).toBe(outcome);
        expect([server.arrived.length, elsewhere.arrived.length]).toEqual([1, 0]);
      }
    },
  );
});

it('returns a redirect that is not to be followed', async () => {
  if (server === undefined) throw new Error('not started');
  server.respond = () => ({ kind: 'answer', status: 307, headers: { location: 'http://127.0.0.1:9/' } });
  const signer = await Signer.open({ keyFile: writeUpstreamKey([server.origin]) });
  expect((await signer.fetch(`${server.origin}/v1/old`, { redirect: 'manual' })).status).toBe(307);
});
