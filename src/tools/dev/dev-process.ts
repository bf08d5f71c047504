/** Runs `proofgate dev`: a throw-away site and the reverse proxy in front of an API under development, in one process. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { statePathOf } from '../../caller/enroll/state-file.ts';
import { parseUpstream } from '../../enforcement/programs/proxy/proxy-settings.ts';
import { createProxyMetrics } from '../../enforcement/reverse-proxy/proxy-metrics.ts';
import { openProxyServer, type ProxyServer } from '../../enforcement/reverse-proxy/proxy-server.ts';
import { listenFailure } from '../../process/connections/listen-failure.ts';
import { removeFile, writeNewFile } from '../../process/files/output-files.ts';
import { openUpstreamPool, type UpstreamAddress } from '../../process/http-proxy/upstream-pool.ts';
import { faultName, usageError } from '../../process/program/errors.ts';
import type { Output } from '../../process/program/output.ts';
import { stopped, untilStopped } from '../../process/program/stop-signal.ts';
import { parseHostAndPort } from '../../process/settings/listen-address.ts';
import { isLoopback } from '../../protocol/loopback.ts';
import { createMemoryReplayStore } from '../../verifier/replay/memory.ts';
import type { ReplayStore } from '../../verifier/replay/store.ts';
import { createVerifier } from '../../verifier/verifier.ts';
import { createVerifierMetrics } from '../../verifier/verifier-metrics.ts';
import type { DevSettings } from './dev-settings.ts';
import { type DevSite, makeDevSite } from './dev-site.ts';
import { type DecisionReport, explainedVerifier } from './explained-verifier.ts';

const MIB = 1024 * 1024;
const LIMITS = {
  maxRequests: 256,
  maxBodyBytes: 64 * MIB,
  maxSpoolBytes: 1024 * MIB,
  bodyTimeoutMs: 60_000,
  idleTimeoutMs: 300_000,
  queueTimeoutMs: 10_000,
};
const DRAIN_MS = 2_000;
const REALTIME_STALENESS_SECONDS = 30;

/** Runs until SIGTERM or SIGINT, then removes the files that it created. @throws CliError */
export async function runDev(settings: DevSettings, output: Output): Promise<void> {
  const { host } = parseHostAndPort('listen', settings.listen);
  if (!isLoopback(host)) {
    throw usageError('bad_address', '--listen must be a loopback address: the key is for development only');
  }
  const address = parseUpstream(settings.upstream);
  await untilStopped(async (stop) => {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-dev-'));
    let snapshot: Snapshot | undefined;
    const replayStore = createMemoryReplayStore({ expectedSkewSeconds: () => snapshot?.skewSeconds });
    const server = await openServer({
      settings,
      output,
      directory,
      address,
      replayStore,
      snapshot: () => snapshot,
    });
    try {
      const site = await makeDevSite(originsOf(server.address), Math.floor(Date.now() / 1000));
      const keyFile = resolve(settings.key ?? join(directory, 'key.pem'));
      await withKeyFiles(keyFile, site, async () => {
        snapshot = site.snapshot;
        await awaitFenceEnd(replayStore, stop);
        greet(output, server.address, keyFile);
        await stopped(stop);
      });
    } finally {
      await server.drain(DRAIN_MS);
      await replayStore.close();
      await rm(directory, { recursive: true, force: true });
    }
  });
}

interface ServerParts {
  readonly settings: DevSettings;
  readonly output: Output;
  /** Directory for temporary files of bodies. */
  readonly directory: string;
  readonly address: UpstreamAddress;
  readonly replayStore: ReplayStore;
  readonly snapshot: () => Snapshot | undefined;
}

async function openServer({
  address,
  directory,
  output,
  settings,
  ...parts
}: ServerParts): Promise<ProxyServer> {
  const onInternalError = (error: unknown) => output.note('internal', `internal fault: ${faultName(error)}`);
  const metrics = createVerifierMetrics(() => undefined);
  const verifier = createVerifier({
    ...parts,
    currentSnapshot: parts.snapshot,
    auditSink: { record: () => true, close: async () => undefined },
    auditMode: 'best_effort',
    metrics,
    nowMs: Date.now,
    realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
    externalOrigin: undefined,
    maxInFlight: LIMITS.maxRequests,
    onInternalError,
  });
  const report = ({ lines, members }: DecisionReport) => output.result(lines, members);
  const pool = openUpstreamPool({
    address,
    tls: isTls(address) ? { ca: undefined, client: undefined, serverName: undefined } : undefined,
    maxConnections: LIMITS.maxRequests,
    responseTimeoutMs: LIMITS.idleTimeoutMs,
    idleTimeoutMs: LIMITS.idleTimeoutMs,
    onConnect: (code) => {
      if (code !== undefined) output.note('upstream_unreachable', `the upstream cannot be reached: ${code}`);
    },
  });
  return openProxyServer({
    verifier: explainedVerifier(verifier, {
      ...parts,
      realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
      report,
    }),
    pool,
    metrics: createProxyMetrics(metrics.registry),
    limits: { ...LIMITS, spoolDirectory: directory },
    externalOrigin: undefined,
    upstreamHost: undefined,
    tracer: undefined,
    onInternalError,
    listen: settings.listen,
    tls: undefined,
    maxConnections: LIMITS.maxRequests,
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.listen);
  });
}

function isTls(address: UpstreamAddress): boolean {
  return address.kind === 'origin' && address.origin.protocol === 'https:';
}

/** The origins of an address, including the one with the name `localhost`. */
function originsOf(address: string): readonly string[] {
  const { port } = parseHostAndPort('listen', address);
  // An origin has no default port.
  return [...new Set([`http://${address}`, `http://localhost:${port}`].map((url) => new URL(url).origin))];
}

/** A store in memory denies proofs from before its start, which may have been presented then. */
async function awaitFenceEnd(store: ReplayStore, stop: AbortSignal): Promise<void> {
  while (!stop.aborted && store.health().fence !== undefined) await delay(50);
}

/** @throws CliError `file_exists`: the files may be those of a real key */
async function withKeyFiles(
  keyFile: string,
  { key, state }: DevSite,
  use: () => Promise<void>,
): Promise<void> {
  const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  await writeNewFile({ path: statePathOf(keyFile), content: state, mode: 0o600 });
  try {
    await writeNewFile({ path: keyFile, content: pem, mode: 0o600 });
    await use().finally(() => removeFile(keyFile));
  } finally {
    await removeFile(statePathOf(keyFile));
  }
}

function greet(output: Output, address: string, keyFile: string): void {
  const url = `http://${address}`;
  const name = JSON.stringify(keyFile);
  output.result(
    [
      `API:  ${url}  (Ctrl-C ends it and removes the key)`,
      `key:  ${keyFile}`,
      '',
      `Node:    const signer = await Signer.open({ keyFile: ${name} }); await signer.fetch('${url}/');`,
      `Python:  httpx.get('${url}/', auth=proofgate.Auth(key_file=${name}))`,
      `Go:      client := &http.Client{Transport: &proofgate.Transport{KeyFile: ${name}}}`,
      `Shell:   proofgate request GET ${url}/ --key ${keyFile}`,
      '',
    ],
    { listen: url, key_file: keyFile },
  );
}
