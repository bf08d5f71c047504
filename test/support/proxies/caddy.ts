/** Caddy as scripts/install-proxies.sh builds it, with deploy/caddy/Caddyfile. */
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkoutPath } from '../harness/checkout.ts';
import { freePort } from '../harness/free-port.ts';
import {
  adapt,
  clientsAt,
  type ForwardProxy,
  type ProxyKind,
  type ProxyParts,
  startListening,
  type TextEdit,
  temporaryFolder,
} from './proxy.ts';

const CADDY = checkoutPath('.cache', 'proxies', 'bin', 'caddy');

export const caddy: ProxyKind = {
  name: 'Caddy',
  profile: 'caddy',
  bodyMode: 'removed',
  unavailable: () => (existsSync(CADDY) ? undefined : 'Caddy is not built: run scripts/install-proxies.sh'),
  start: (parts) => startCaddy(parts),
};

/** @param edits further replacements in the shipped file */
export async function startCaddy(parts: ProxyParts, edits: readonly TextEdit[] = []): Promise<ForwardProxy> {
  const folder = await temporaryFolder();
  const port = await freePort();
  const configPath = join(folder.path, 'Caddyfile');
  const shipped = readFileSync(checkoutPath('deploy', 'caddy', 'Caddyfile'), 'utf8');
  const text = adapt(shipped, [
    ['http://:10000', `http://:${port}`],
    ['api.example:10000', `api.example:${port}`],
    ['api.example', parts.authority],
    ['//run/proofgate/http.sock', `/${parts.socketPath}`],
    ['127.0.0.1:8081', `${parts.upstream.host}:${parts.upstream.port}`],
    // On a busy test machine the verifier may be slower than it may be in service.
    ['250ms', '8s'],
    ['500ms', '8s'],
    ...edits,
  ]);
  await writeFile(configPath, text);
  const env = { XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path };
  const args = ['run', '--config', configPath, '--adapter', 'caddyfile'];
  try {
    const child = await startListening({ command: CADDY, args, env }, port);
    return {
      ...clientsAt(port),
      logs: async () => [...child.stdoutLines, ...child.stderrLines].join('\n'),
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
