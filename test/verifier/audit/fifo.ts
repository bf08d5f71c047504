/** Pipes with a name, and readers that take what is there. */
import { execFileSync } from 'node:child_process';
import { constants, openSync, readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

export function makeFifo(path: string): string {
  execFileSync('mkfifo', [path]);
  return path;
}

/** Does not wait for a writer. */
export const openReader = (path: string) => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);

/** The current contents. */
export function readAvailable(descriptor: number): string {
  const parts: Buffer[] = [];
  for (let part = readOnce(descriptor); part !== undefined; part = readOnce(descriptor)) {
    if (part.byteLength === 0) break;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** Reads a pipe until its writers have gone. */
export async function readToEnd(descriptor: number): Promise<string> {
  const parts: Buffer[] = [];
  for (;;) {
    const part = readOnce(descriptor);
    if (part?.byteLength === 0) return Buffer.concat(parts).toString();
    if (part === undefined) await delay(1);
    else parts.push(part);
  }
}

/** undefined: nothing yet; empty: no writer */
function readOnce(descriptor: number): Buffer | undefined {
  const part = Buffer.alloc(1 << 16);
  try {
    return part.subarray(0, readSync(descriptor, part));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  }
}
