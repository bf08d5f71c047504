/** A real proxy with the shipped configuration, between callers, a forward-authentication server and an API. */
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { type Child, type ChildOptions, describeExit, startChild } from '../harness/child.ts';
import { waitFor } from '../wait.ts';

/** What the proxy connects, and the host that it serves. */
export interface ProxyParts {
  /** Where the verifier listens. */
  readonly socketPath: string;
  readonly upstream: { readonly host: string; readonly port: number };
  readonly authority: string;
}

export interface ForwardProxy {
  readonly host: string;
  /** HTTP/1.1 in plain text. */
  readonly port: number;
  /** HTTP/2 with prior knowledge; the same port where the proxy can. */
  readonly http2Port: number;
  readonly http1: WireClient;
  readonly http2: WireClient;
  /** Everything that it has logged. */
  logs(): Promise<string>;
  stop(): Promise<void>;
}

/** A kind of proxy. */
export interface ProxyKind {
  readonly name: string;
  /** `--http-profile` and `--http-body` of the shipped configuration. */
  readonly profile: 'envoy' | 'nginx' | 'caddy' | 'traefik';
  readonly bodyMode: 'removed' | 'forwarded';
  /** Why it cannot be started here; undefined when it can. */
  unavailable(): string | undefined;
  start(parts: ProxyParts): Promise<ForwardProxy>;
}

export const SECRET = 'x1IhJ0Yxg9fA6bqk3cTn5rWz8mVdPeSu';

const HOST = '127.0.0.1';

export function clientsAt(
  port: number,
  http2Port = port,
): Pick<ForwardProxy, 'host' | 'port' | 'http2Port' | 'http1' | 'http2'> {
  return {
    host: HOST,
    port,
    http2Port,
    http1: http1Client({ host: HOST, port }),
    http2: http2Client({ host: HOST, port: http2Port }),
  };
}

/** A text and its replacement; a pattern is replaced as `String.replace` does. */
export type TextEdit = readonly [from: string | RegExp, to: string];

/** Replaces every occurrence of each text. @throws when the shipped file does not have one of them */
export function adapt(text: string, replacements: readonly TextEdit[]): string {
  return replacements.reduce((adapted, [from, to]) => {
    const changed = typeof from === 'string' ? adapted.replaceAll(from, to) : adapted.replace(from, to);
    const isThere = typeof from === 'string' ? adapted.includes(from) : from.test(adapted);
    if (!isThere) throw new Error(`the shipped file has no ${from}`);
    return changed;
  }, text);
}

export async function temporaryFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'pg-proxy-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Starts it and waits until the port accepts connections. @throws when it ends first; nothing is left running then */
export async function startListening(options: ChildOptions, port: number): Promise<Child> {
  const child = startChild(options);
  try {
    await waitFor(`${options.command} to listen`, async () => {
      return child.exitStatus() !== undefined || (await accepts(port)) ? true : undefined;
    });
    const status = child.exitStatus();
    if (status !== undefined) throw new Error(`ended at start: ${describeExit(status, child.stderrLines)}`);
    return child;
  } catch (error) {
    await child.stop();
    throw error;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
