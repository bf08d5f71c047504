/**
 * The environment of the demo, from tokens to working keys: what a platform team and its workloads do, in the same order and
 * with the same commands. Each part is on a free loopback port or on a socket file in the demo's folder.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBrokerPlane, trustBroker } from './broker-plane.ts';
import { startEnrollmentPlane } from './enrollment-plane.ts';
import type { DemoEnvironment } from './environment.ts';
import { DemoFiles } from './files.ts';
import {
  awaitReadiness,
  declareSite,
  type EnrolledKey,
  type Enrolling,
  enroll,
  enrollLastingCallers,
  Operator,
  type Tell,
} from './onboarding.ts';
import { type Parts, SetupError } from './parts.ts';
import { ProofgateCli } from './proofgate-cli.ts';
import { partLines, siteLines, stepLine } from './report.ts';
import { startGateway, startSidecar } from './request-plane.ts';
import { startSigner } from './signer-plane.ts';
import { callers, overreachingProfileYaml, siteYaml } from './site.ts';

/**
 * @param print takes lines as things happen
 * @throws SetupError
 */
export async function startEnvironment(
  parts: Parts,
  print: (...lines: string[]) => void,
): Promise<DemoEnvironment> {
  const files = await makeFolder(parts);
  const cli = await parts.start({
    name: 'proofgate',
    start: async () => new ProofgateCli(),
    stop: (started) => started.stop(),
  });
  const [plane, gateway, broker] = await Promise.all([
    startEnrollmentPlane(parts, files),
    startGateway(parts, files),
    startBrokerPlane(parts, files, cli),
  ]);
  const { brokerUrl } = broker;
  const yaml = siteYaml({ origin: gateway.origin, issuer: plane.issuer, brokerUrl });
  await writeFile(files.siteYaml, yaml);
  print(...partLines(plane, gateway, brokerUrl), '', ...siteLines(yaml), '');
  const tell: Tell = (what, cameBack) => print(stepLine(what, cameBack));
  const operator = new Operator(cli, files, plane);
  const policies = await declareSite(operator, files, tell);
  await trustBroker(operator, files, tell);
  const enrolling = { cli, files, plane, policies, tell };
  const [sidecar, lasting] = await Promise.all([
    startSidecar(parts, files, plane.controlUrl),
    enrollLastingCallers(enrolling),
  ]);
  tell(
    'verifier --control-url',
    `the sidecar has its bundle from Control, and is ready: ${sidecar.adminUrl}/readyz`,
  );
  const signer = await startSigner(parts, files, gateway.origin);
  tell('signer --key --upstream', `signs what programs send to ${signer.signerUrl}`);
  const brief = await enrollBriefly(enrolling, lasting.spare);
  const keys = new Map([...lasting.keys, [callers.brief, brief]]);
  const demo = {
    files,
    cli,
    operator,
    keys,
    policies,
    ...plane,
    ...broker,
    ...gateway,
    ...sidecar,
    ...signer,
  };
  await writeOverreachingProfiles(demo);
  return demo;
}

/** With a token that ends while the demo runs: on a slow machine later, since a request must pass before. */
async function enrollBriefly(enrolling: Enrolling, { tookMs }: EnrolledKey): Promise<EnrolledKey> {
  const tokenSeconds = Math.ceil(leastBriefSeconds + (briefCommands * tookMs) / 1000);
  const key = await enroll(enrolling, callers.brief, tokenSeconds);
  await awaitReadiness(enrolling, callers.brief);
  return key;
}

const leastBriefSeconds = 3;
/** Enrolling, waiting for the sidecar, signing; and as much again. */
const briefCommands = 6;

async function writeOverreachingProfiles({ files, keys, origin }: DemoEnvironment): Promise<void> {
  for (const caller of [callers.billing, callers.reporting]) {
    const yaml = overreachingProfileYaml(caller, keys.get(caller)?.keyId ?? '', origin);
    await writeFile(files.overreachingProfile(caller), yaml);
  }
}

async function makeFolder(parts: Parts): Promise<DemoFiles> {
  const directory = await parts.start({
    name: 'temporary folder',
    advice: `is ${tmpdir()} writable? TMPDIR names another place`,
    start: () => mkdtemp(join(tmpdir(), 'proofgate-demo-')),
    stop: (path) => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  });
  const files = new DemoFiles(directory);
  if (Buffer.byteLength(files.socket) > maxSocketPathBytes) {
    throw new SetupError('temporary folder', `${directory} is too long`, 'set TMPDIR to a shorter path');
  }
  for (const folder of foldersOf(files)) await mkdir(folder);
  return files;
}

const foldersOf = ({ controlData, brokerKeys, brokerProfiles, pins, state }: DemoFiles) => [
  ...[controlData, brokerKeys, brokerProfiles],
  ...[pins, state],
];

/** Longest path of a socket file on Linux is 107 bytes, on macOS 103. */
const maxSocketPathBytes = 103;
