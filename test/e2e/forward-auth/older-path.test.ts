/**
 * nginx and Caddy as configured before standard proofs: they ask `/check` and replace no field of a proof. Transcripts count,
 * and no other proof, which would reach the API unused.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { headerValues, type WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { caddy, startCaddy } from '../../support/proxies/caddy.ts';
import { type GuardedApi, startGuardedApi } from '../../support/proxies/guarded-api.ts';
import { nginx, startNginx } from '../../support/proxies/nginx.ts';
import type { ProxyKind } from '../../support/proxies/proxy.ts';
import { attestedCaller, derivedKeyCaller } from '../../support/site/callers.ts';
import { signDpop, signedRequest, signHttp, withMoreHeaders } from '../../support/site/signed-request.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { STANDARD_ROUTES } from '../../support/site/standard-routes.ts';
import { waitFor } from '../../support/wait.ts';

const PATH = ['/check/all-proofs', '/check'] as const;
/** Lines of nginx.conf that set a field of proofs to that of the answer. */
const REPLACING = [
  ['            proxy_set_header Signature $proofgate_signature;\n', ''],
  ['            proxy_set_header Signature-Input $proofgate_signature_input;\n', ''],
  ['            proxy_set_header DPoP $proofgate_dpop;\n', ''],
] as const;
const OLDER: readonly ProxyKind[] = [
  { ...nginx, start: (parts) => startNginx(parts, [PATH, ...REPLACING]) },
  {
    ...caddy,
    start: (parts) => startCaddy(parts, [PATH, [' Signature Signature-Input DPoP X-', ' X-']]),
  },
];

const fixture = useSite('suite');
let bundleDirectory = '';
beforeAll(async () => {
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: Object.values(STANDARD_ROUTES) });
});

describe.each(OLDER)('$name at /check', (kind) => {
  const unavailable = kind.unavailable();
  const itRuns = unavailable === undefined ? it : it.skip;
  let guarded: GuardedApi;
  const common = () => ({ caller: derivedKeyCaller(fixture.site), route: STANDARD_ROUTES.read });
  const transcript = () => signedRequest(fixture.site, common());
  beforeAll(async () => {
    if (unavailable !== undefined) return;
    guarded = await startGuardedApi(kind, fixture.site, (flags) =>
      fixture.verifier({ bundleDirectory, flags }),
    );
    fixture.stops.push(() => guarded.stop());
    await waitFor('an allowed request', async () => {
      const { status } = await guarded.proxy.http1.send(transcript());
      return status === 200 || undefined;
    });
  });

  itRuns('takes transcripts, over both protocols', async () => {
    for (const client of [guarded.proxy.http1, guarded.proxy.http2]) {
      guarded.upstream.clear();
      expect((await client.send(transcript())).status).toBe(200);
      const [received] = guarded.upstream.requests;
      expect(headerValues(received?.headers ?? [], 'x-proofgate-subject')).toEqual(['client:billing']);
    }
  });

  itRuns('refuses every other proof, and two at once', async () => {
    const keyed = signHttp(fixture.site, common());
    const dpop = signDpop(fixture.site, common());
    const requests: readonly WireRequest[] = [
      keyed,
      signHttp(fixture.site, { ...common(), caller: attestedCaller(fixture.site), hasPassport: true }),
      dpop,
      signDpop(fixture.site, { ...common(), route: STANDARD_ROUTES.nonced }),
      ...[keyed, dpop].map(({ headers = [] }) =>
        withMoreHeaders(
          transcript(),
          headers.filter(([name]) => name !== 'authorization'),
        ),
      ),
    ];
    for (const client of [guarded.proxy.http1, guarded.proxy.http2]) {
      guarded.upstream.clear();
      for (const request of requests) {
        const { headers, status } = await client.send(request);
        expect([status, headerValues(headers, 'x-proofgate-reason')]).toEqual([
          401,
          ['invalid_request_proof'],
        ]);
        // The verifier asks for no proof that it would refuse.
        expect(headerValues(headers, 'accept-signature')).toEqual([]);
        expect(headerValues(headers, 'www-authenticate').join()).not.toContain('DPoP');
      }
      expect(guarded.upstream.requests).toEqual([]);
    }
  });
});
