/** The npm workspaces, as `make packages` compiled them. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutPath } from './checkout.ts';

const FOLDERS = {
  '@proofgate/client': ['sdk', 'node'],
  '@proofgate/middleware': ['packages', 'middleware'],
} as const;

type Workspace = keyof typeof FOLDERS;

/** @returns the folder of a workspace, which has its compiled modules */
export function workspaceFolder(name: Workspace): string {
  const folder = checkoutPath(...FOLDERS[name]);
  if (!existsSync(join(folder, 'dist'))) throw new Error(`${name} is not compiled: run make packages`);
  return folder;
}

/** Packs a workspace without compiling it anew: tests run at the same time. @returns the package, in the folder `to` */
export function packWorkspace(name: Workspace, to: string): string {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', to];
  return join(to, execFileSync('npm', args, { cwd: workspaceFolder(name), encoding: 'utf8' }).trim());
}
