/** Any of our services as a process of its own: started, ready when /readyz says so, stopped by SIGTERM. */

import { httpGet, waitFor } from '../wait.ts';
import { type Child, type ChildOptions, describeExit, startChild } from './child.ts';
import { proofgateCommand } from './program.ts';

export interface ServiceOptions extends ChildOptions {
  /** Answers 200 when ready. As a function of the lines so far when the port is only known from them. */
  readonly readyUrl: string | ((lines: readonly string[]) => string | undefined);
}

export interface Service extends Omit<Child, 'stop'> {
  /** SIGTERM, and an orderly end: anything but exit 0 is an error. */
  stop(): Promise<void>;
}

/** `proofgate <args>` as a service. */
export function startProofgate(
  args: readonly string[],
  options: Pick<ServiceOptions, 'readyUrl' | 'env' | 'cwd' | 'ownProcessGroup'>,
  release?: string,
): Promise<Service> {
  return startService({ ...options, ...proofgateCommand(args, release) });
}

/** @throws when it is not ready in time or ends first; nothing is left running then */
export async function startService(options: ServiceOptions): Promise<Service> {
  const child = startChild(options);
  try {
    await waitFor(`${options.command} to be ready`, () => probe(child, options));
    assertRunning(child);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return {
    ...child,
    stop: async () => {
      const status = await child.stop();
      if (status.code !== 0)
        throw new Error(`not an orderly end: ${describeExit(status, child.stderrLines)}`);
    },
  };
}

/** Also `true` when the child has ended: further waiting is pointless, and {@link assertRunning} then says why. */
async function probe(child: Child, { readyUrl }: ServiceOptions): Promise<true | undefined> {
  if (child.exitStatus() !== undefined) return true;
  const lines = [...child.stdoutLines, ...child.stderrLines];
  const url = typeof readyUrl === 'string' ? readyUrl : readyUrl(lines);
  if (url === undefined) return undefined;
  return (await httpGet(url)).status === 200 ? true : undefined;
}

function assertRunning(child: Child): void {
  const status = child.exitStatus();
  if (status !== undefined) throw new Error(`ended at start: ${describeExit(status, child.stderrLines)}`);
}
