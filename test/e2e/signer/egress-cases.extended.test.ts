/**
 * The paths, headers, framings and bodies of the other suites, sent by an application to the shipped egress Envoy and to Istio's sidecar:
 * either the verifier finds what the signer signed, or nothing leaves.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MESSAGE_CASES } from '../../../src/tools/conformance/public-cases.ts';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { ALLOWED_CASES } from '../../conformance/cases/allowed.ts';
import { HEADER_CASES } from '../../conformance/cases/headers.ts';
import { messagesOf } from '../../conformance/suite.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { envoyVersions, type RunningEnvoy } from '../../support/harness/envoy.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { atSite, type ConformanceCase } from '../../support/points/conformance-case.ts';
import { sendMessage } from '../../support/points/exchange.ts';
import { AMBIGUOUS_PATHS } from '../../support/site/ambiguous-targets.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { useEnvironment } from '../../support/site/environment.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../../support/site/gateway.ts';
import { growth } from '../../support/site/observe.ts';
import { OWN_HEADER_CASES } from '../../support/site/own-header.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { sign } from '../../support/site/signed-request.ts';
import { SMUGGLED_NAMES } from '../../support/site/smuggled-headers.ts';
import {
  type SignerProcess,
  startEgressEnvoy,
  startEgressParties,
  startIstioEgress,
} from './egress-gateway.ts';

/** What an application sends that knows nothing of Proofgate. */
function plain(name: string, request: Partial<WireRequest>): ConformanceCase {
  const whole = { method: 'GET', target: '/v1/orders/4711', authority: AUTHORITY, ...request };
  return { name, expected: { kind: 'allowed' }, make: () => whole };
}

const tenant = (...lines: readonly HeaderLine[]) =>
  plain(`x-tenant as ${JSON.stringify(lines)}`, {
    target: ROUTES.tenantOrders.path_template,
    headers: lines,
  });

/** All names in their usual spelling, and one in each; ../smuggling.test.ts sends each spelling of all. */
const SPELLINGS = SMUGGLED_NAMES.filter(
  (name) =>
    /^x(?:-[a-z]{3,})+$/.test(name) || name.toLowerCase().replace(/[^a-z]/g, '') === 'xproofgatesubject',
);

/** What callers may send: these must not be refused. */
const USUAL: readonly ConformanceCase[] = [
  ...ALLOWED_CASES,
  ...HEADER_CASES,
  // The header that the signer signs.
  tenant(['x-tenant', 'north']),
  plain('own header: a bearer token, unsigned', {
    target: ROUTES.bearer.path_template,
    headers: [['authorization', 'Bearer 1']],
  }),
];

const CASES: readonly ConformanceCase[] = [
  ...USUAL,
  ...MESSAGE_CASES.map(atSite),
  ...AMBIGUOUS_PATHS.map((target) => plain(`path ${JSON.stringify(target)}`, { target })),
  ...SPELLINGS.map((name) => plain(`name ${name}`, { headers: [[name, 'smuggled']] })),
  ...OWN_HEADER_CASES.map(
    ({ make, name, route = ROUTES.bearer }): ConformanceCase => ({
      name: `own header: ${name}`,
      expected: { kind: 'allowed' },
      make: (site) => make(sign(site, { caller: derivedKeyCaller(site), route })),
    }),
  ),
  tenant(['x-tenant', '  north  south  ']),
  tenant(['x-tenant', 'north, south']),
  tenant(['X-Tenant', '"north; a=1"']),
  tenant(['x-tenant', 'north'], ['x-tenant', 'south']),
  tenant(['x-tenant', 'north'], ['x_tenant', 'south']),
  tenant(['x-tenant', '']),
  tenant(['x-tenant', 'n\xf6rd']),
  tenant(['x-tenant', 'north'], ['connection', 'x-tenant']),
  tenant(),
];

/**
 * Of {@link USUAL}: the signer refuses a page in a browser, a signed header that the connection takes away, and a host with another
 * port; an Envoy refuses upgrades, `connection: host`, and names with an underscore, with Istio that of the API.
 */
const REFUSED =
  /^(?:header (?:origin: https|connection: (?:x-tenant, which|host|upgrade, upgrade)|[a-z-]*_)|allowed: an authority with the default port$)/;

/** The path that was signed may be one that the caller may not use. */
const ALLOWED_OR_NOT_GRANTED =
  /^(?:allowed |denied (?:source_subject_mismatch not_granted|insufficient_key_binding) )/;

/** The gateway answers 503 itself after the decision: header-count.test.ts. */
const isLost = (name: string, version: string) => name === 'header 80 more' && version === '1.40.0';

const environment = useEnvironment(['usual']);
let certificates: TestCertificates;
let elsewhere: Upstream;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
  elsewhere = await startUpstream();
});
afterAll(async () => {
  await elsewhere.stop();
  await certificates.remove();
});

const RUNS = [
  ...envoyVersions
    .toReversed()
    .map((version) => ({ name: 'envoy/egress.yaml', start: startEgressEnvoy, version })),
  ...envoyVersions
    .slice(-1)
    .map((version) => ({ name: 'envoy/istio/egress.yaml', start: startIstioEgress, version })),
];

/** The first run sends each case by each of its protocols, the others by one of them, in turn. */
function casesOf(run: (typeof RUNS)[number], protocol: Protocol): readonly ConformanceCase[] {
  return CASES.filter(({ protocols = PROTOCOLS }, at) => {
    if (!protocols.includes(protocol)) return false;
    return run === RUNS[0] || protocols.length === 1 || protocol === PROTOCOLS[at % 2];
  });
}

describe.each(RUNS)('$name, Envoy $version', (run) => {
  const { start, version } = run;
  let gateway: Gateway;
  let signer: SignerProcess;
  let egress: RunningEnvoy;
  beforeAll(async () => {
    ({ gateway, signer } = await startEgressParties(environment, version, certificates));
    egress = await start(version, { signer, gateway, certificates }, elsewhere);
  });
  afterAll(async () => {
    await egress.stop();
    await signer.stop();
  });

  describe.each(PROTOCOLS)('%s', (protocol) => {
    it.each(casesOf(run, protocol))('$name', async (one) => {
      for (const message of messagesOf(one, environment.site)) {
        gateway.upstream.clear();
        const before = await gateway.verifier.decisions();
        await sendMessage(egress, protocol, message);
        const [decision, ...more] = growth(before, await gateway.verifier.decisions()).keys();
        expect(more).toEqual([]);
        const isForwarded = decision?.startsWith('allowed ') === true && !isLost(one.name, version);
        expect(gateway.upstream.requests.length).toBe(isForwarded ? 1 : 0);
        if (decision !== undefined) expect(decision).toMatch(ALLOWED_OR_NOT_GRANTED);
        else if (USUAL.includes(one)) expect(one.name).toMatch(REFUSED);
      }
    });
  });
});
