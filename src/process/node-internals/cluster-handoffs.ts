/**
 * Closes the connections that a worker of node:cluster had not taken over when it ended. Node.js keeps each open in the primary, where
 * nobody reads it: the client waits until it gives up. The connection that a hanging worker was offered last is always one of them.
 * No benchmark justifies this file; test/process/node-internals/cluster-handoffs.test.ts fails without it.
 */
import type { Worker } from 'node:cluster';

interface Handle {
  close(): void;
}

/** Call it for each worker that was forked. */
export function closeLostHandoffs(worker: Worker): void {
  const child = worker.process;
  const offered = new Map<unknown, Handle>();
  const send = child.send;
  Reflect.set(child, 'send', (message: object, handle: unknown, ...rest: readonly unknown[]): unknown => {
    if (Reflect.get(message, 'act') === 'newconn' && isHandle(handle)) {
      offered.set(Reflect.get(message, 'seq'), handle);
    }
    return Reflect.apply(send, child, [message, handle, ...rest]);
  });
  // The worker took it, and the primary closes its own copy, or the next worker is offered it.
  child.on('internalMessage', (message: object) => offered.delete(Reflect.get(message, 'ack')));
  worker.once('exit', () => {
    for (const handle of offered.values()) handle.close();
    offered.clear();
  });
}

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function';
}
