/**
 * Measures what stands between a caller and its API, on one core each time: `proofgate proxy` beside a bare proxy with undici, nginx
 * with forward authentication, and Envoy with the verifier, all in one run and in turns. CPU is that of every process
 * between caller and API.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { httpFlags } from '../../test/e2e/forward-auth/guarded-api.ts';
import { nginx } from '../../test/e2e/forward-auth/proxies/nginx.ts';
import { startEnvoy } from '../../test/e2e/harness/envoy.ts';
import { patient } from '../../test/e2e/harness/envoy-config.ts';
import { startProofgate } from '../../test/e2e/harness/sidecar.ts';
import { cpuUsOf, keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { ascending, median } from '../statistics.ts';
import { encodeGet, latenciesOver, throughputOf } from './http-sender.ts';
import { percentiles } from './in-turns.ts';
import type { ProxyJob } from './proxy-servers.ts';
import { credentialLines, goodPlan } from './requests.ts';
import { startSiteVerifier } from './servers.ts';
import { AUTH_SITE, AUTHORITY, type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const ENVOY_VERSION = '1.40.0';
const ROUNDS = 12;
const REQUESTS_A_ROUND = 1_500;
const PER_SECOND = 500;
/** It takes the place of two processes, so it must cost less. */
const MOST_OVER_ENVOY = 1;

export const proxies: Part = {
  name: 'proxy',
  title: `GETs to an API through four kinds of proxy, ${ROUNDS} rounds of ${REQUESTS_A_ROUND} for CPU and of ${PER_SECOND} a second for latency, in turns`,
  run: () => inWorkspace(measure),
};

interface Contender {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
  readonly cpuUs: number[];
  readonly latenciesMs: (readonly number[])[];
}

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
  workspace.started(keepThisOnCore(OTHERS_CORE));
  for (const one of contenders) for (let count = 0; count < 3; count += 1) await load(one, site);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const one of contenders) {
      const beforeUs = cpuOf(one);
      await load(one, site);
      one.cpuUs.push((cpuOf(one) - beforeUs) / REQUESTS_A_ROUND);
    }
    for (const one of contenders) {
      const requests = requestsTo(site, PER_SECOND);
      one.latenciesMs.push(ascending(await latenciesOver('127.0.0.1', one.port, requests, PER_SECOND)));
    }
  }
  return report(contenders);
}

function report(contenders: readonly Contender[]): PartResult {
  const medianOf = (name: string) =>
    median(contenders.find((one) => one.name.startsWith(name))?.cpuUs ?? [Number.NaN]);
  return {
    figures: contenders.flatMap(({ cpuUs, latenciesMs, name }) => [
      figure(`${name}: CPU a request`, 'µs', cpuUs),
      figure(`${name}: p50`, 'ms', percentiles(latenciesMs, 0.5)),
      figure(`${name}: p99`, 'ms', percentiles(latenciesMs, 0.99)),
    ]),
    bounds: [
      {
        name: 'CPU of the proxy over that of Envoy and verifier, medians',
        value: medianOf('proofgate proxy') / medianOf('Envoy'),
        atMost: MOST_OVER_ENVOY,
      },
    ],
  };
}

/** The processes that a contender starts are those below this one that were not there before. */
async function contender(name: string, start: () => Promise<number>): Promise<Contender> {
  const before = new Set(descendants());
  const port = await start();
  const pids = descendants().filter((pid) => !before.has(pid));
  for (const pid of pids) keepOnCore(pid, MEASURED_CORE);
  return { name, port, pids, cpuUs: [], latenciesMs: [] };
}

function descendants(): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid) ?? 0;
    return parent === process.pid || (parent > 1 && isBelow(parent));
  };
  return [...parents.keys()].filter(isBelow);
}

const cpuOf = ({ pids }: Contender) => pids.reduce((sum, pid) => sum + cpuUsOf(pid), 0);
const load = ({ port }: Contender, site: BenchSite) =>
  throughputOf('127.0.0.1', port, requestsTo(site, REQUESTS_A_ROUND));

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
      {
        readyUrl: (lines) => {
          const admin = startOf(lines)?.admin_listen;
          return admin === undefined ? undefined : `http://${admin}/readyz`;
        },
        readyTimeoutMs: 120_000,
      },
    ),
  );
  return Number(startOf(service.stderrLines)?.listen.split(':')[1]);
}

function startOf(
  lines: readonly string[],
): { readonly listen: string; readonly admin_listen: string } | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : JSON.parse(line);
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

async function startServer(workspace: Workspace, job: ProxyJob): Promise<number> {
  const script = new URL('proxy-servers.js', import.meta.url).pathname;
  const child = spawn(process.env.PROOFGATE_TEST_NODE ?? process.execPath, [script, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  workspace.started({
    async stop() {
      child.kill();
      await exited;
    },
  });
  return portOf(child);
}

function portOf({ stdout }: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    if (stdout === null) throw new Error('no output to read');
    createInterface({ input: stdout }).once('line', (line) => resolve(JSON.parse(line).port));
    stdout.once('end', () => reject(new Error('a server ended before it was measured')));
  });
}
