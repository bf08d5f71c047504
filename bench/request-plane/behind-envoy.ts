/**
 * Measures what callers notice: requests through a real Envoy whose external authorizer is the verifier, next to requests
 * through another whose authorizer is a bare echo that allows everything. Both Envoys have the shipped configuration and answer
 * directly, so there is nothing else to wait for. Both get the same requests at the same rate, in turns.
 */
import { type RunningEnvoy, startEnvoy } from '../../test/support/harness/envoy.ts';
import { patient, shipped, type VerifierAddress } from '../../test/support/harness/envoy-config.ts';
import { keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { figure, type Part, type PartResult, ratioBound } from '../report.ts';
import { ascending } from '../statistics.ts';
import { ratios } from './cost-in-turns.ts';
import { encodeGet, latenciesOver, throughputOf } from './http-sender.ts';
import { disturbance, measureInTurns, type Pairs, percentiles } from './in-turns.ts';
import { credentialLines, goodPlan } from './requests.ts';
import { startFloor, startSiteVerifier } from './servers.ts';
import { AUTHORITY, type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const ENVOY_VERSION = '1.40.0';
const PAIRS = 16;
const MOST_PAIRS = 48;
const SLICE_SECONDS = 2;
const CAPACITY_REQUESTS = 10_000;
const MOST_RATIO = 1.3;
/** A member of Protocol Buffers that has a length of its own, of less than 128 bytes. */
const member = (number: number, ...parts: readonly Buffer[]) => {
  const bytes = Buffer.concat(parts);
  return Buffer.concat([Buffer.of((number << 3) | 2, bytes.byteLength), bytes]);
};
/** A CheckResponse with status 0, and in its `ok_response` the one header that the shipped configuration asks for. */
const ALLOW = Buffer.concat([
  member(1, Buffer.of(0x08, 0)),
  member(
    3,
    member(
      2,
      member(
        1,
        member(1, Buffer.from('x-proofgate-decision-id')),
        member(2, Buffer.from('00000000-0000-4000-8000-000000000000')),
      ),
    ),
  ),
]).toString('base64');

export const behindEnvoy: Part = {
  name: 'envoy',
  title: `requests through Envoy ${ENVOY_VERSION} at half load, ${PAIRS} slices of ${SLICE_SECONDS} s for each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const verifier = await startSiteVerifier(workspace, site, {
    more: ['--external-origin', `https://${AUTHORITY}`],
  });
  const echo = workspace.started(await startFloor({ answer: ALLOW }));
  const withVerifier = workspace.started(await envoyBefore(verifier.address));
  const withEcho = workspace.started(await envoyBefore(echo.address));
  for (const { pid } of [verifier, echo]) keepOnCore(pid, MEASURED_CORE);
  for (const { pid } of [withVerifier, withEcho]) keepOnCore(pid, OTHERS_CORE);
  workspace.started(keepThisOnCore(OTHERS_CORE));
  const capacity = await capacityOf(withVerifier, site);
  const rate = capacity / 2;
  const slice = ({ host, port }: RunningEnvoy) => {
    const requests = requestsTo(site, Math.floor(rate * SLICE_SECONDS));
    return async () => ascending(await latenciesOver(host, port, requests, rate));
  };
  const measured = await measureInTurns({
    first: () => slice(withVerifier),
    second: () => slice(withEcho),
    pairs: PAIRS,
    mostPairs: MOST_PAIRS,
  });
  return report(capacity, measured);
}

async function envoyBefore(authorizer: string): Promise<RunningEnvoy> {
  const [host = '', port = ''] = authorizer.split(':');
  const verifier: VerifierAddress = { kind: 'tcp', host, port: Number(port) };
  return await startEnvoy(ENVOY_VERSION, {
    verifier,
    // Unused: Envoy answers every route itself.
    upstream: { host: '127.0.0.1', port: 9 },
    edits: [
      // While the host has the machine, a check may take longer than any: that is to be seen, not to be a 503.
      ...patient,
      {
        path: [...shipped.virtualHost, 'routes'],
        value: [{ match: { prefix: '/' }, direct_response: { status: 200 } }],
      },
    ],
  });
}

function requestsTo(site: BenchSite, count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => {
    const plan = goodPlan(site, index);
    return encodeGet({ path: plan.path, authority: AUTHORITY, lines: credentialLines(plan) });
  });
}

async function capacityOf({ host, port }: RunningEnvoy, site: BenchSite): Promise<number> {
  await throughputOf(host, port, requestsTo(site, CAPACITY_REQUESTS));
  return await throughputOf(host, port, requestsTo(site, CAPACITY_REQUESTS));
}

function report(capacity: number, measured: Pairs<readonly number[]>): PartResult {
  const { first, second } = measured;
  return {
    figures: [
      figure('through Envoy and verifier', 'a second', [capacity]),
      figure('half of that', 'a second', [capacity / 2]),
      ...[0.5, 0.9, 0.99].flatMap((share) => [
        figure(`verifier, p${share * 100}`, 'ms', percentiles(first, share)),
        figure(`bare echo, p${share * 100}`, 'ms', percentiles(second, share)),
      ]),
      ...disturbance(measured),
    ],
    bounds: [
      ratioBound(
        'p99 over that of the echo',
        ratios(percentiles(first, 0.99), percentiles(second, 0.99)),
        MOST_RATIO,
      ),
    ],
  };
}
