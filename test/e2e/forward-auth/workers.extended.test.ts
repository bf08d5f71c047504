/** The HTTP port of several processes on one Redis: each answers, a proof passes once, and shutdown is orderly. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { startUpstream } from '../../support/harness/upstream.ts';
import { httpFlags } from '../../support/proxies/guarded-api.ts';
import { nginx } from '../../support/proxies/nginx.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { startRedis } from '../../support/site/verifier-states.ts';

const fixture = useSite();
const stops: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});

it('serves 400 requests with two workers, each proof once', async () => {
  const { url } = await startRedis({ site: fixture.site, stops });
  const folder = await mkdtemp(join(fixture.site.directory, 'http-'));
  const { flags, socketPath } = await httpFlags(nginx, folder);
  const workers = ['--workers', '2', '--redis-timeout', '2s'];
  const verifier = await fixture.verifier({ replay: url, flags: [...workers, ...flags] });
  const upstream = await startUpstream();
  stops.push(() => upstream.stop());
  const proxy = await nginx.start({ socketPath, upstream, authority: 'api.shop.example' });
  stops.unshift(() => proxy.stop());

  const requests = Array.from({ length: 200 }, () =>
    signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), route: ROUTES.readOrder }),
  );
  const statuses = await Promise.all(
    requests.flatMap((request) => [proxy.http1.send(request), proxy.http1.send(request)]),
  );
  const count = (wanted: number) => statuses.filter(({ status }) => status === wanted).length;
  expect([count(200), count(403), upstream.requests.length]).toEqual([200, 200, 200]);
  const { text } = await verifier.probe('/metrics');
  const answered = [...text.matchAll(/^proofgate_http_checks_total\{[^}]*worker="(\d)"[^}]*\} \d+$/gm)];
  expect(new Set(answered.map(([, worker]) => worker))).toEqual(new Set(['1', '2']));
  // It ends with exit 0 when the fixture stops it.
});
