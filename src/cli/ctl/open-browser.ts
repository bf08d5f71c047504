/** Opens a page in the user's browser if possible. The caller also shows the URL. */
import { spawn } from 'node:child_process';
import type { Environment } from '../../program/output.ts';

const OPENERS: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'open',
  freebsd: 'xdg-open',
  linux: 'xdg-open',
};

/** Uses no shell. Does not wait for the opener, so a failure stays unknown. */
export function openBrowser(url: string, env: Environment, platform = process.platform): void {
  const opener = OPENERS[platform];
  if (opener === undefined || (opener === 'xdg-open' && !hasDesktop(env))) return;
  try {
    const child = spawn(opener, [url], { env: { ...env }, stdio: 'ignore', detached: true });
    child.on('error', () => {});
    child.unref();
  } catch {
    // The system cannot start a process.
  }
}

/** Without a display, xdg-open would start a terminal browser. */
function hasDesktop({ DISPLAY, WAYLAND_DISPLAY }: Environment): boolean {
  return (DISPLAY ?? '') !== '' || (WAYLAND_DISPLAY ?? '') !== '';
}
