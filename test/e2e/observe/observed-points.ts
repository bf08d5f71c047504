/** An enforcement point with one observed route, and what each of many mixed requests must lead to. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import {
  headerValues,
  NoResponse,
  type WireClient,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { readObservedPaths } from '../../../src/verifier/observation/observed-paths-file.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import type { UpstreamRequest } from '../../support/harness/upstream.ts';
import type { EnforcementPoint, EnforcementPointDriver } from '../../support/points/enforcement-point.ts';
import { attestedCaller, derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withHeader, withMoreHeaders } from '../../support/site/signed-request.ts';
import { createSite, nowSeconds, type Site } from '../../support/site/site.ts';
import { isForbidden, SMUGGLED_NAMES } from '../../support/site/smuggled-headers.ts';
import { waitFor } from '../../support/wait.ts';

const { readOrder } = ROUTES;
const MARK = 'x-mark';
/** Times that the mixed requests are sent: `make soak` sends over 5,000. */
const ROUNDS = Number(process.env.PROOFGATE_TEST_MIXED_ROUNDS ?? 1);
const PATHS_FILE = 'paths.json';

interface Kind {
  readonly name: string;
  readonly count: number;
  /** `identity`: allowed; `observed`: passes without identity; `denied`: here or by the proxy, which may normalise a path first. */
  readonly leadsTo: 'identity' | 'observed' | 'denied';
  /** Of the audit events. */
  readonly reason?: string;
  readonly make: (site: Site, at: number) => WireRequest;
}

const plain = (target: string, changes: Partial<WireRequest> = {}): WireRequest => ({
  method: 'GET',
  target,
  authority: AUTHORITY,
  ...changes,
});
const signed = (site: Site) => signedRequest(site, { caller: derivedKeyCaller(site), route: readOrder });
const withoutAuthorization = (request: WireRequest): WireRequest => ({
  ...request,
  headers: (request.headers ?? []).filter(([name]) => name.toLowerCase() !== 'authorization'),
});

const MISSING = 'invalid_request_proof/authorization_missing';
const KINDS: readonly Kind[] = [
  { name: 'signed', count: 40, leadsTo: 'identity', make: signed },
  {
    name: 'unsigned',
    count: 40,
    leadsTo: 'observed',
    reason: MISSING,
    make: () => plain('/v1/orders/4711'),
  },
  {
    name: 'another order than the signed one',
    count: 20,
    leadsTo: 'observed',
    reason: 'request_binding_mismatch/target',
    make: (site, at) => ({ ...signed(site), target: `/v1/orders/${at}` }),
  },
  {
    name: 'a passport that is none',
    count: 20,
    leadsTo: 'observed',
    reason: 'invalid_request_proof/passport_malformed',
    make: (site) => withHeader(signed(site), 'authorization', 'Passport none'),
  },
  {
    name: 'an unknown caller',
    count: 20,
    leadsTo: 'observed',
    reason: 'invalid_request_proof/authorization_scheme',
    make: () => plain('/v1/orders/4711', { headers: [['authorization', 'Bearer of-the-application']] }),
  },
  {
    name: 'a proof without its passport',
    count: 20,
    leadsTo: 'observed',
    reason: MISSING,
    make: (site) => withoutAuthorization(signed(site)),
  },
  {
    name: 'a revoked key',
    count: 20,
    leadsTo: 'denied',
    reason: 'invalid_request_proof/key_revoked',
    make: (site) => signedRequest(site, { caller: derivedKeyCaller(site, 'dk_revoked'), route: readOrder }),
  },
  {
    name: 'an enforced route, unsigned',
    count: 10,
    leadsTo: 'denied',
    reason: MISSING,
    make: () => plain('/v1/payroll'),
  },
  {
    name: 'an enforced route that only an attested workload may call',
    count: 10,
    leadsTo: 'identity',
    make: (site) => signedRequest(site, { caller: attestedCaller(site), route: ROUTES.vault }),
  },
  {
    name: 'a path that no route matches',
    count: 40,
    leadsTo: 'observed',
    reason: 'bundle_route_missing/no_match',
    make: (_, at) => plain(`/v2/reports/${at}`),
  },
  ...[
    ...[
      '/v1/Payroll',
      '/V1/payroll',
      '/v1/payroll/',
      '/v1/payroll/x',
      '/v1/payroll.json',
      '/v1/VAULT',
      '/v1/ledger/',
    ],
    ...[
      '/v1/payrol%C5%BF/../payroll',
      '/v1/whoami%20',
      '/v1/prices/live/',
      '/v1/Prices/Recent',
      '/v1/admin/reload',
    ],
  ].map(
    (target): Kind => ({ name: `around: ${target}`, count: 2, leadsTo: 'denied', make: () => plain(target) }),
  ),
  ...['POST', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'].map(
    (method): Kind => ({
      name: `around: ${method}`,
      count: 2,
      leadsTo: 'denied',
      make: () => plain('/v1/payroll', { method }),
    }),
  ),
];

const NEVER_SEEN = [
  'authorization',
  'x-proofgate-transcript',
  'x-proofgate-signature',
  'x-proofgate-passport',
];

/** @param arrived at the upstream, without a verified caller */
function expectNoIdentity(arrived: UpstreamRequest): void {
  const forbidden = arrived.headers.filter(([name]) => isForbidden(name)).map(([name]) => name.toLowerCase());
  expect(forbidden.sort()).toEqual(['x-proofgate-decision-id', 'x-proofgate-observed']);
  expect(headerValues(arrived.headers, 'x-proofgate-observed')).toEqual(['denied']);
  const passports = headerValues(arrived.headers, 'authorization').filter((value) => /passport/i.test(value));
  expect(passports).toEqual([]);
}

/** @param workers processes of the verifier: several need Redis, and keep no paths */
export function observedSuite(driver: EnforcementPointDriver, workers = 1): void {
  const isAlone = workers === 1;
  let site: Site;
  let point: EnforcementPoint;
  let client: WireClient;
  const stores: TestRedisServer[] = [];
  const until = nowSeconds() + 3600;
  /** Its own for each verifier, because a store also holds the mark, and their bundles have the same revision. */
  const newStore = async () => {
    const store = await TestRedisServer.start();
    stores.push(store);
    return store.url;
  };
  const start = async (flags: readonly string[], untilSeconds = until) => {
    const bundleDirectory = await site.makeBundle({
      observed: { routes: [readOrder.route_id], untilSeconds },
    });
    return driver.start({
      site,
      bundleDirectory,
      replay: isAlone ? 'memory' : await newStore(),
      audit: 'required_file',
      holderQuota: undefined,
      becomesReady: true,
      flags: isAlone ? flags : [...flags, '--workers', String(workers)],
    });
  };
  const allow = (untilSeconds: number) => [
    ...['--allow-observe', `${readOrder.route_id}=${formatTime(untilSeconds)}`],
    ...['--allow-observe-unmatched', formatTime(untilSeconds)],
  ];
  beforeAll(async () => {
    site = await createSite();
    const paths = isAlone ? ['--observe-paths-file', join(site.directory, PATHS_FILE)] : [];
    point = await start([...allow(until), ...paths]);
    client = http1Client(point.address);
  });
  afterAll(async () => {
    await point?.stop();
    for (const store of stores) await store.stop();
    await site?.remove();
  });

  test('mixed requests: identity only on verified ones, denials counted by reason', async () => {
    const plan = KINDS.flatMap((kind) =>
      Array.from({ length: kind.count * ROUNDS }, (_, at) => ({ kind, at })),
    );
    const sent = plan.map(({ at, kind }) => ({
      kind,
      request: withMoreHeaders(kind.make(site, at), [[MARK, kind.name.replace(/[^a-zA-Z0-9/%. -]/g, '')]]),
    }));
    // Each 13th is sent once more, unchanged: of signed ones, a replay.
    const replays = sent.filter(({ kind }, at) => kind.name === 'signed' && at % 4 === 0);
    point.upstream.clear();
    const before = (await point.decisions()).length;
    const answers = [];
    for (const { kind, request } of sent) answers.push({ kind, status: (await client.send(request)).status });
    for (const { request } of replays) {
      expect((await client.send(request)).status).toBe(200);
    }
    for (const { kind, status } of answers) {
      const found = status === 200 ? 'passed' : status >= 400 && status < 500 ? 'denied' : status;
      expect([kind.name, found]).toEqual([kind.name, kind.leadsTo === 'denied' ? 'denied' : 'passed']);
    }
    const arrived = point.upstream.requests;
    const withIdentity = arrived.filter(
      ({ headers }) => headerValues(headers, 'x-proofgate-subject').length > 0,
    );
    const others = arrived.filter((request) => !withIdentity.includes(request));
    const countOf = (leadsTo: Kind['leadsTo']) => sent.filter(({ kind }) => kind.leadsTo === leadsTo).length;
    expect(withIdentity).toHaveLength(countOf('identity'));
    expect(others).toHaveLength(countOf('observed') + replays.length);
    for (const request of withIdentity) {
      expect(['signed', 'an enforced route that only an attested workload may call']).toContain(
        headerValues(request.headers, MARK)[0],
      );
      expect(headerValues(request.headers, 'x-proofgate-observed')).toEqual([]);
    }
    for (const request of others) expectNoIdentity(request);
    // What belongs to the application stays.
    const bearers = others.filter(
      ({ headers }) => headerValues(headers, 'authorization')[0] === 'Bearer of-the-application',
    );
    expect(bearers).toHaveLength(20 * ROUNDS);

    const events = (await point.decisions()).slice(before);
    const reasons = new Map<string, number>();
    for (const { detail, outcome, reason } of events) {
      if (outcome !== 'observed') continue;
      const name = `${reason}${detail === undefined ? '' : `/${detail}`}`;
      reasons.set(name, (reasons.get(name) ?? 0) + 1);
    }
    const expected = new Map<string, number>([['jti_replay', replays.length]]);
    for (const { kind } of sent) {
      if (kind.leadsTo !== 'observed' || kind.reason === undefined) continue;
      expected.set(kind.reason, (expected.get(kind.reason) ?? 0) + 1);
    }
    expect(reasons).toEqual(expected);

    const file = join(site.directory, 'events.jsonl');
    await writeFile(file, events.map((event) => JSON.stringify(event)).join('\n'));
    const report = await runInProcess(['rollout', 'status', '--audit-file', file, '--output', 'json']);
    expect(JSON.parse(report.stdout).routes).toContainEqual(
      expect.objectContaining({
        route_id: readOrder.route_id,
        verified: 40 * ROUNDS,
        requests: 180 * ROUNDS + replays.length,
      }),
    );
  });

  (isAlone ? test : test.skip)('the forgotten route is proposed from what was observed', async () => {
    const file = join(site.directory, PATHS_FILE);
    const seen = await waitFor('the paths to be written', async () => {
      const { shapes } = await readObservedPaths(file);
      return shapes.find(
        ({ pathTemplate, requests }) => pathTemplate === '/v2/reports/{p3}' && requests === 40 * ROUNDS,
      );
    });
    expect(seen).toMatchObject({ method: 'GET' });
    const { stdout } = await runInProcess(['bundle', 'routes', '--observed', file, '--output', 'json']);
    expect(JSON.parse(stdout).routes).toContainEqual(
      expect.objectContaining({ method: 'GET', path_template: '/v2/reports/{p3}' }),
    );
  });

  test('no header of ours, in any spelling, reaches the upstream of an unverified request', async () => {
    point.upstream.clear();
    let passed = 0;
    for (const [at, name] of SMUGGLED_NAMES.entries()) {
      const forged = [[name, 'client:admin'] as const];
      const headers = at % 2 === 0 ? forged : [...forged, ...forged];
      const response = await client.send(plain('/v1/orders/4711', { headers })).catch((error: unknown) => {
        if (error instanceof NoResponse) return undefined;
        throw error;
      });
      if (response?.status === 200) passed += 1;
    }
    expect(point.upstream.requests).toHaveLength(passed);
    // The others cannot remove these headers, and deny.
    if (/^envoy-grpc|^reverse-proxy|^(?:express|fastify|hono|node-http)$/.test(driver.name))
      expect(passed).toBeGreaterThan(100);
    for (const request of point.upstream.requests) expectNoIdentity(request);
  });

  test('credentials do not reach the upstream, in repeated lines either', async () => {
    point.upstream.clear();
    const { headers = [] } = signed(site);
    const passport = headers.filter(([name]) => name.toLowerCase() === 'authorization');
    const attempts = [
      [...passport, ...passport],
      [['Authorization', 'Bearer x'] as const, ...passport],
      [...passport, ['AUTHORIZATION', 'Basic eDp5'] as const],
      [['x-proofgate-passport', passport[0]?.[1].slice(9) ?? ''] as const],
    ];
    for (const lines of attempts) await client.send(plain('/v1/orders/4711', { headers: lines }));
    for (const { headers: seen } of point.upstream.requests) {
      const found = seen.filter(([name]) => NEVER_SEEN.includes(name.toLowerCase()));
      expect(found.filter(([, value]) => /passport|^ey/i.test(value))).toEqual([]);
    }
  });

  test('an upgrade of an unverified caller is not passed on as one', async () => {
    point.upstream.clear();
    const upgrade = [
      ['connection', 'upgrade'],
      ['upgrade', 'websocket'],
      ['sec-websocket-version', '13'],
      ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='],
    ] as const;
    for (const target of ['/v1/orders/4711', '/v2/reports', '/v1/payroll']) {
      await client.send(plain(target, { headers: upgrade })).catch(() => undefined);
    }
    for (const { headers } of point.upstream.requests) {
      expect(headerValues(headers, 'upgrade')).toEqual([]);
      expectNoIdentity({ ...point.upstream.requests[0], headers } as UpstreamRequest);
    }
  });

  test('without the flag, and after the end, the route enforces', async () => {
    for (const flags of [[], allow(nowSeconds() - 1)]) {
      const enforcing = await start(flags);
      try {
        const here = http1Client(enforcing.address);
        for (const target of ['/v1/orders/4711', '/v2/reports']) {
          expect((await here.send(plain(target))).status).toBe(target.startsWith('/v1') ? 401 : 403);
        }
        expect((await here.send(signed(site))).status).toBe(200);
        expect(enforcing.upstream.requests).toHaveLength(1);
      } finally {
        await enforcing.stop();
      }
    }
  });
}
