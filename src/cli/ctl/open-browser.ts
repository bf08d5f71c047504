/** Opens a page in the person's browser, where that can be done; whoever calls has shown its address too. */
import { spawn } from 'node:child_process';
import type { Environment } from '../../program/output.ts';

const OPENERS: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'open',
  freebsd: 'xdg-open',
  linux: 'xdg-open',
};

/** Never through a shell. Whether it worked is not known: the opener may fail, and is not waited for. */
export function openBrowser(url: string, env: Environment, platform = process.platform): void {
  const opener = OPENERS[platform];
  if (opener === undefined || (opener === 'xdg-open' && !hasDesktop(env))) return;
  try {
    const child = spawn(opener, [url], { env: { ...env }, stdio: 'ignore', detached: true });
    child.on('error', () => {});
    child.unref();
  } catch {
    // The system starts no process now.
  }
}

/** Without one, xdg-open starts a browser for terminals. */
function hasDesktop({ DISPLAY, WAYLAND_DISPLAY }: Environment): boolean {
  return (DISPLAY ?? '') !== '' || (WAYLAND_DISPLAY ?? '') !== '';
}
