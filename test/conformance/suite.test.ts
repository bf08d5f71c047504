/** The suite finds what it is for: at an API without a verifier, every request that arrives fails its case. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { decodeTranscript, parseTranscript } from '../../src/protocol/transcript.ts';
import { CONTEXT_HEADERS } from '../../src/protocol/wire-names.ts';
import { type HeaderLine, headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { startUpstream, type Upstream, type UpstreamRequest } from '../support/harness/upstream.ts';
import type { EnforcementPoint } from '../support/points/enforcement-point.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { isForbidden } from '../support/site/smuggled-headers.ts';
import { CASES } from './cases.ts';
import { type CoreStates, coreStates } from './states.ts';
import { outcomeOf } from './suite.ts';

let site: Site;
let upstream: Upstream;
let core: CoreStates;
beforeAll(async () => {
  site = await createSite();
  core = coreStates(site);
  upstream = await startUpstream();
});
afterAll(async () => {
  await upstream.stop();
  await core.stop();
  await site.remove();
});

const cases = CASES.filter(({ protocols }) => protocols?.includes('HTTP/1.1') ?? true);

/** An API in place of a point, with what arrives there changed before the suite sees it. */
function unprotected(change: (request: UpstreamRequest) => UpstreamRequest): EnforcementPoint {
  return {
    address: upstream,
    upstream: {
      get requests() {
        return upstream.requests.map(change);
      },
      clear: upstream.clear,
    },
    decisions: async () => [],
    stop: async () => undefined,
  };
}

/** As a gateway that verifies nothing: it removes what it must, and believes what the transcript says. */
function believed(request: UpstreamRequest): UpstreamRequest {
  const [header = ''] = headerValues(request.headers, 'x-proofgate-transcript');
  const signed = parseTranscript(decodeTranscript(header) ?? Buffer.alloc(0), 'authorization');
  const keyId = signed?.keyId ?? '';
  const values: Readonly<Record<string, string>> = {
    [CONTEXT_HEADERS.subject]: signed?.subject ?? '',
    [CONTEXT_HEADERS.keyId]: keyId,
    [CONTEXT_HEADERS.routeId]: signed?.routeId ?? '',
  };
  const context = Object.values(CONTEXT_HEADERS)
    .filter((name) => name !== CONTEXT_HEADERS.clientId || keyId.startsWith('dk_'))
    .map((name): HeaderLine => [name, values[name] ?? '']);
  const others = request.headers.filter(([name]) => !isForbidden(name) && !/^authorization$/i.test(name));
  return { ...request, headers: [...others, ...context], trailers: [] };
}

async function outcomes(point: EnforcementPoint): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const one of cases) {
    const state = { point, snapshot: await core.of(one.state ?? 'usual') };
    const run = outcomeOf(one, { state, protocol: 'HTTP/1.1', site });
    found.set(one.name, await run.catch(() => 'failed'));
  }
  return found;
}

const count = (found: ReadonlyMap<string, string>, outcome: string) =>
  [...found.values()].filter((one) => one === outcome).length;

it('fails each case whose request arrives with its credentials', async () => {
  const found = await outcomes(unprotected((request) => request));
  expect(count(found, 'allowed')).toBe(0);
  expect(count(found, 'failed')).toBeGreaterThan(350);
});

it('fails each case that the core denies, at a point that believes every proof', async () => {
  const found = await outcomes(unprotected(believed));
  const passed = cases.filter(({ name }) => found.get(name) === 'allowed');
  expect(passed.filter(({ expected }) => expected.kind === 'denied').map(({ name }) => name)).toEqual([]);
  expect(passed.length).toBeGreaterThan(150);
  expect(count(found, 'failed')).toBeGreaterThan(150);
});
