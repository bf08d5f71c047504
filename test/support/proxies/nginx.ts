/** nginx from the system's package, with the configurations of `deploy/nginx/`. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkoutPath } from '../harness/checkout.ts';
import { freePort } from '../harness/free-port.ts';
import {
  adapt,
  clientsAt,
  type ForwardProxy,
  type ProxyKind,
  type ProxyParts,
  SECRET,
  startListening,
  temporaryFolder,
} from './proxy.ts';

/** Debian's package has it in a folder that is not on every user's path. */
const NGINX = '/usr/sbin/nginx';

export const nginx: ProxyKind = {
  name: 'nginx',
  profile: 'nginx',
  bodyMode: 'removed',
  unavailable: () => (spawnSync(NGINX, ['-v']).status === 0 ? undefined : 'nginx is not installed'),
  start: (parts) => startNginx(parts),
};

type Edit = readonly [from: string, to: string];

/** nginx.conf, which asks the verifier. @param edits further replacements in the shipped file */
export function startNginx(parts: ProxyParts, edits: readonly Edit[] = []): Promise<ForwardProxy> {
  return startShipped('nginx.conf', parts.authority, (secretPath) => [
    ['/etc/nginx/proofgate-secret.conf', secretPath],
    ['/run/proofgate/http.sock', parts.socketPath],
    ['127.0.0.1:8081', `${parts.upstream.host}:${parts.upstream.port}`],
    // On a busy test machine the verifier may be slower than it may be in service.
    ['250ms', '8s'],
    ['500ms', '8s'],
    ...edits,
  ]);
}

/** proxy.conf, which forwards to `proofgate proxy`. */
export function startNginxBeforeProxy(
  proxy: { readonly host: string; readonly port: number },
  authority: string,
): Promise<ForwardProxy> {
  return startShipped('proxy.conf', authority, () => [
    ['server 127.0.0.1:8080', `server ${proxy.host}:${proxy.port}`],
  ]);
}

async function startShipped(
  file: string,
  authority: string,
  edits: (secretPath: string) => readonly Edit[],
): Promise<ForwardProxy> {
  const folder = await temporaryFolder();
  const [port, http2Port] = [await freePort(), await freePort()];
  const configPath = join(folder.path, 'nginx.conf');
  const secretPath = join(folder.path, 'proofgate-secret.conf');
  const accessPath = join(folder.path, 'access.log');
  const shipped = readFileSync(checkoutPath('deploy', 'nginx', file), 'utf8');
  const text = adapt(shipped, [
    ['worker_processes auto;', `worker_processes 1; daemon off; ${asRoot()}`],
    ['/run/nginx.pid', join(folder.path, 'pid')],
    ['/var/log/nginx/error.log', 'stderr'],
    ['/var/log/nginx/access.log', accessPath],
    ['listen 127.0.0.1:10000 default_server;', listenBoth(port, http2Port, ' default_server')],
    ['listen 127.0.0.1:10000;', listenBoth(port, http2Port, '')],
    ['api.example', authority],
    ['http {\n', `http {\n${temporaryPaths(folder.path)}\n`],
    ...edits(secretPath),
  ]);
  await writeFile(configPath, text);
  await writeFile(secretPath, `map "" $proofgate_secret { default "${SECRET}"; }\n`, { mode: 0o600 });
  try {
    const child = await startListening({ command: NGINX, args: ['-c', configPath, '-e', 'stderr'] }, port);
    return {
      ...clientsAt(port, http2Port),
      logs: async () => [...child.stderrLines, await readFile(accessPath, 'utf8')].join('\n'),
      stop: async () => {
        await child.stop();
        await folder.remove();
      },
    };
  } catch (error) {
    await folder.remove();
    throw error;
  }
}

/** Workers of a master that root starts would be another user, who may not use the verifier's socket. */
function asRoot(): string {
  return process.getuid?.() === 0 ? 'user root;' : '';
}

/** nginx 1.22 has no port for HTTP/1.1 and HTTP/2 in plain text. */
function listenBoth(port: number, http2Port: number, more: string): string {
  return `listen 127.0.0.1:${port}${more}; listen 127.0.0.1:${http2Port} http2${more};`;
}

function temporaryPaths(folder: string): string {
  const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return names.map((name) => `${name}_temp_path ${join(folder, name)};`).join(' ');
}
