/**
 * Measures what the middleware costs in Fastify beside `@fastify/jwt`, which verifies the signature of one EdDSA token for each
 * request and remembers none. Of both, what a bare Fastify costs is taken away; the servers are measured in turns.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { cpuUsOf, keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import { encodeGet, throughputOf } from './http-sender.ts';
import { disturbance, measureInTurns, type Pairs } from './in-turns.ts';
import type { MiddlewareJob } from './middleware-server.ts';
import { credentialLines, goodPlan } from './requests.ts';
import { AUTH_SITE, AUTHORITY, type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const PAIRS = 15;
const MOST_PAIRS = 24;
const REQUESTS_A_SLICE = 2_000;
const WARM_UP_SLICES = 5;
/** A proof binds more than a token, and is seen once. */
const MOST_RATIO = 2;

export const middlewareCost: Part = {
  name: 'middleware',
  title: `CPU of a request in Fastify behind the middleware and behind @fastify/jwt, ${PAIRS} slices of ${REQUESTS_A_SLICE} requests, in turns`,
  run: () => inWorkspace(measure),
};

interface Subject {
  readonly pid: number;
  readonly port: number;
  readonly requests: () => readonly Buffer[];
}

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const bare = await start(workspace, { kind: 'bare' }, () => requestsWith(site, () => []));
  const jwt = await start(workspace, { kind: 'jwt', publicKey: pem }, () =>
    requestsWith(site, () => [['authorization', `Bearer ${tokenOf(privateKey)}`]]),
  );
  const proofgate = await start(workspace, await verifierJob(workspace, site), () =>
    requestsWith(site, (index) => credentialLines(goodPlan(site, index))),
  );
  workspace.started(keepThisOnCore(OTHERS_CORE));
  for (const subject of [bare, jwt, proofgate]) {
    for (let count = 0; count < WARM_UP_SLICES; count += 1) await cpuUs(subject, subject.requests());
  }
  const jwtTurns = await inTurns(bare, jwt);
  const proofgateTurns = await inTurns(bare, proofgate);
  const overhead = ({ first, second }: Pairs<number>) =>
    second.map((sample, pair) => sample - (first[pair] ?? Number.NaN));
  const ratio = median(overhead(proofgateTurns)) / median(overhead(jwtTurns));
  return {
    figures: [
      figure('Fastify alone', 'µs CPU', [...jwtTurns.first, ...proofgateTurns.first]),
      figure('@fastify/jwt, in addition', 'µs CPU', overhead(jwtTurns)),
      figure('the middleware, in addition', 'µs CPU', overhead(proofgateTurns)),
      ...disturbance(jwtTurns, '@fastify/jwt: '),
      ...disturbance(proofgateTurns, 'the middleware: '),
    ],
    bounds: [
      { name: 'the middleware over @fastify/jwt, in addition to Fastify', value: ratio, atMost: MOST_RATIO },
    ],
  };
}

function inTurns(base: Subject, subject: Subject): Promise<Pairs<number>> {
  const slice = (of: Subject) => {
    const requests = of.requests();
    return () => cpuUs(of, requests);
  };
  return measureInTurns({
    first: () => slice(base),
    second: () => slice(subject),
    pairs: PAIRS,
    mostPairs: MOST_PAIRS,
  });
}

/** Microseconds of CPU for one request. */
async function cpuUs({ pid, port }: Subject, requests: readonly Buffer[]): Promise<number> {
  const beforeUs = cpuUsOf(pid);
  await throughputOf('127.0.0.1', port, requests);
  return (cpuUsOf(pid) - beforeUs) / requests.length;
}

type Lines = readonly (readonly [name: string, value: string])[];

function requestsWith(site: BenchSite, lines: (index: number) => Lines): readonly Buffer[] {
  return Array.from({ length: REQUESTS_A_SLICE }, (_, index) =>
    encodeGet({ authority: AUTHORITY, path: goodPlan(site, index).path, lines: lines(index) }),
  );
}

/** A token of the usual claims, another one each time. */
function tokenOf(key: KeyObject): string {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    iss: 'https://issuer.shop.example',
    sub: 'client:1',
    jti: randomUUID(),
    iat: nowSeconds,
    exp: nowSeconds + 300,
  };
  const signed = `${encoded({ alg: 'EdDSA', typ: 'JWT' })}.${encoded(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
}

async function verifierJob({ directory }: Workspace, site: BenchSite): Promise<MiddlewareJob> {
  const stateDir = await mkdtemp(join(directory, 'middleware-'));
  const options = {
    authSite: AUTH_SITE,
    externalOrigin: `https://${AUTHORITY}`,
    stateDir,
    bundle: site.directory,
    bundleKeys: [site.bundleKeyFile],
    replay: 'memory',
    auditFile: join(stateDir, 'audit.jsonl'),
  };
  return { kind: 'proofgate', options };
}

async function start(
  workspace: Workspace,
  job: MiddlewareJob,
  requests: Subject['requests'],
): Promise<Subject> {
  const script = new URL('middleware-server.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  workspace.started({
    async stop() {
      child.kill();
      await exited;
    },
  });
  const port = await portOf(child);
  const { pid = 0 } = child;
  keepOnCore(pid, MEASURED_CORE);
  return { pid, port, requests };
}

function portOf({ stdout }: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    if (stdout === null) throw new Error('no output to read');
    createInterface({ input: stdout }).once('line', (line) => resolve(JSON.parse(line).port));
    stdout.once('end', () => reject(new Error('a server ended before it was measured')));
  });
}
