/** Runs `proofgate control` as a process, and calls its API like an operator. */
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { type Child, describeExit, startChild } from '../harness/child.ts';
import { freePort } from '../harness/free-port.ts';
import { httpGet, waitFor } from '../wait.ts';

export interface ApiAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  /** Parsed body; empty without a body. */
  readonly body: { readonly [member: string]: unknown };
}

export interface ApiCall {
  readonly method?: string;
  readonly path: string;
  readonly body?: object;
  readonly token?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly ca?: string;
  /** HTTPS agent for many calls. */
  readonly agent?: Agent;
}

/** Makes one call, on a new connection unless an agent keeps connections. */
export function callApi(url: string, call: ApiCall): Promise<ApiAnswer> {
  const { method = 'GET', path, body, token, headers, ca, agent = false } = call;
  const send = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send(`${url}${path}`, {
      method,
      agent,
      ...(ca === undefined ? {} : { ca }),
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const parsed = text.startsWith('{') ? JSON.parse(text) : {};
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parsed });
      });
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

export interface ControlProgram {
  readonly child: Child;
  readonly url: string;
  readonly adminUrl: string;
  call(call: ApiCall): Promise<ApiAnswer>;
}

export interface ControlProgramOptions {
  readonly launcher: string;
  readonly dataDirectory: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly scheme?: 'http' | 'https';
  /** CA for calls over HTTPS. */
  readonly ca?: string;
  /** The port of an earlier process, so that clients find the new one. */
  readonly port?: number;
}

/** @throws when the process is not ready in time or exits first; it leaves nothing running */
export async function startControlProgram(options: ControlProgramOptions): Promise<ControlProgram> {
  const { launcher, dataDirectory, flags = [], env, ca } = options;
  const listen = `127.0.0.1:${options.port ?? (await freePort())}`;
  const adminListen = `127.0.0.1:${await freePort()}`;
  const addresses = ['--listen', listen, '--admin-listen', adminListen];
  const child = startChild({
    command: process.execPath,
    args: [launcher, 'control', '--data-dir', dataDirectory, ...addresses, ...flags],
    ...(env === undefined ? {} : { env }),
  });
  const adminUrl = `http://${adminListen}`;
  try {
    await waitFor('control to be ready', async () => {
      const ended = child.exitStatus();
      if (ended !== undefined) return ended;
      return (await httpGet(`${adminUrl}/readyz`)).status === 200 ? 'ready' : undefined;
    });
    const ended = child.exitStatus();
    if (ended !== undefined) throw new Error(`it ended: ${describeExit(ended, child.stderrLines)}`);
  } catch (error) {
    await child.stop();
    throw error;
  }
  const url = `${options.scheme ?? 'http'}://${listen}`;
  return { child, url, adminUrl, call: (call) => callApi(url, ca === undefined ? call : { ca, ...call }) };
}

export async function readBootstrapToken(dataDirectory: string): Promise<string> {
  return (await readFile(join(dataDirectory, 'bootstrap-token'), 'utf8')).trim();
}
