/** Proxies that are measured against each other: each on one core, in turns, with the CPU of all its processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { cpuUsOf, keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { type Figure, figure } from '../report.ts';
import { ascending } from '../statistics.ts';
import { latenciesOver, throughputOf } from './http-sender.ts';
import { percentiles } from './in-turns.ts';
import type { ProxyJob } from './proxy-servers.ts';
import type { Workspace } from './workspace.ts';

const ROUNDS = 12;
const REQUESTS_A_ROUND = 1_500;
const PER_SECOND = 500;
export const IN_TURNS = `${ROUNDS} rounds of ${REQUESTS_A_ROUND} for CPU and of ${PER_SECOND} a second for latency, in turns`;

export interface Contender {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
  readonly cpuUs: number[];
  readonly latenciesMs: (readonly number[])[];
}

/** Fills in what the contenders cost. @param requestsTo makes so many requests to one of them */
export async function loadInTurns(
  workspace: Workspace,
  contenders: readonly Contender[],
  requestsTo: (contender: Contender, count: number) => readonly Buffer[],
): Promise<void> {
  const load = (one: Contender) => throughputOf('127.0.0.1', one.port, requestsTo(one, REQUESTS_A_ROUND));
  workspace.started(keepThisOnCore(OTHERS_CORE));
  for (const one of contenders) for (let count = 0; count < 3; count += 1) await load(one);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const one of contenders) {
      const beforeUs = cpuOf(one);
      await load(one);
      one.cpuUs.push((cpuOf(one) - beforeUs) / REQUESTS_A_ROUND);
    }
    for (const one of contenders) {
      const requests = requestsTo(one, PER_SECOND);
      one.latenciesMs.push(ascending(await latenciesOver('127.0.0.1', one.port, requests, PER_SECOND)));
    }
  }
}

export function figuresOf({ cpuUs, latenciesMs, name }: Contender): readonly Figure[] {
  return [
    figure(`${name}: CPU a request`, 'µs', cpuUs),
    figure(`${name}: p50`, 'ms', percentiles(latenciesMs, 0.5)),
    figure(`${name}: p99`, 'ms', percentiles(latenciesMs, 0.99)),
  ];
}

/** The processes that a contender starts are those below this one that were not there before. */
export async function contender(name: string, start: () => Promise<number>): Promise<Contender> {
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

/** How `startProofgate` sees that a program with an admin listener is ready. */
export const READY = {
  readyUrl: (lines: readonly string[]) => {
    const admin = startOf(lines)?.admin_listen;
    return admin === undefined ? undefined : `http://${admin}/readyz`;
  },
};

export function startOf(
  lines: readonly string[],
): { readonly listen: string; readonly admin_listen: string } | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : JSON.parse(line);
}

export async function startServer(workspace: Workspace, job: ProxyJob): Promise<number> {
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
