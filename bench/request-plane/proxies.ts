/**
 * Measures what stands between a caller and its API, on one core each time: `proofgate proxy` beside a bare proxy with undici, nginx
 * with forward authentication, and Envoy with the verifier, all in one run and in turns. CPU is that of every process
 * between caller and API.
 */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { startEnvoy } from '../../test/support/harness/envoy.ts';
import { patient } from '../../test/support/harness/envoy-config.ts';
import { startProofgate } from '../../test/support/harness/sidecar.ts';
import { httpFlags } from '../../test/support/proxies/guarded-api.ts';
import { nginx } from '../../test/support/proxies/nginx.ts';
import type { Part, PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import { encodeGet } from './http-sender.ts';
import {
  type Contender,
  contender,
  figuresOf,
  IN_TURNS,
  loadInTurns,
  READY,
  startOf,
  startServer,
} from './proxy-contenders.ts';
import { credentialLines, goodPlan } from './requests.ts';
import { startSiteVerifier } from './servers.ts';
import { AUTH_SITE, AUTHORITY, type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const ENVOY_VERSION = '1.40.0';
/** It takes the place of two processes, so it must cost less. */
const MOST_OVER_ENVOY = 1;

export const proxies: Part = {
  name: 'proxy',
  title: `GETs to an API through four kinds of proxy, ${IN_TURNS}`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const api = await startServer(workspace, {});
  const contenders = [
    await contender('bare undici proxy', () =>
      startServer(workspace, { upstream: `http://127.0.0.1:${api}` }),
    ),
    await contender('proofgate proxy', () => startProxy(workspace, site, api)),
    await contender('nginx + forward authentication', () => startNginx(workspace, site, api)),
    await contender(`Envoy ${ENVOY_VERSION} + verifier`, () => startEnvoyBefore(workspace, site, api)),
  ];
  await loadInTurns(workspace, contenders, (_, count) => requestsTo(site, count));
  return report(contenders);
}

function report(contenders: readonly Contender[]): PartResult {
  const medianOf = (name: string) =>
    median(contenders.find((one) => one.name.startsWith(name))?.cpuUs ?? [Number.NaN]);
  return {
    figures: contenders.flatMap(figuresOf),
    bounds: [
      {
        name: 'CPU of the proxy over that of Envoy and verifier, medians',
        value: medianOf('proofgate proxy') / medianOf('Envoy'),
        atMost: MOST_OVER_ENVOY,
      },
    ],
  };
}

function requestsTo(site: BenchSite, count: number): readonly Buffer[] {
  return Array.from({ length: count }, (_, index) => {
    const plan = goodPlan(site, index);
    return encodeGet({ path: plan.path, authority: AUTHORITY, lines: credentialLines(plan) });
  });
}

const ORIGIN = ['--external-origin', `https://${AUTHORITY}`] as const;

async function startProxy(workspace: Workspace, site: BenchSite, api: number): Promise<number> {
  const own = await mkdtemp(join(workspace.directory, 'proxy-'));
  const service = workspace.started(
    await startProofgate(
      [
        ...['proxy', '--auth-site', AUTH_SITE, '--state-dir', own, '--bundle', site.directory],
        ...['--bundle-key', site.bundleKeyFile, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
        ...['--replay', 'memory', '--audit-file', join(own, 'audit.jsonl'), ...ORIGIN],
        ...['--upstream', `http://127.0.0.1:${api}`],
      ],
      READY,
    ),
  );
  return Number(startOf(service.stderrLines)?.listen.split(':')[1]);
}

async function startNginx(workspace: Workspace, site: BenchSite, api: number): Promise<number> {
  const { flags, socketPath } = await httpFlags(nginx, workspace.directory);
  const more = flags.map((flag) => flag.replace('http://', 'https://'));
  await startSiteVerifier(workspace, site, { more });
  const upstream = { host: '127.0.0.1', port: api };
  return workspace.started(await nginx.start({ socketPath, upstream, authority: AUTHORITY })).port;
}

async function startEnvoyBefore(workspace: Workspace, site: BenchSite, api: number): Promise<number> {
  const verifier = await startSiteVerifier(workspace, site, { more: ORIGIN });
  const [host = '', port] = verifier.address.split(':');
  const envoy = await startEnvoy(ENVOY_VERSION, {
    verifier: { kind: 'tcp', host, port: Number(port) },
    upstream: { host: '127.0.0.1', port: api },
    edits: [...patient],
  });
  return workspace.started(envoy).port;
}
