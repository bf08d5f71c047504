/**
 * Closes the connections that were offered to a worker of node:cluster and not accepted before it ended. Node.js keeps
 * them open in the primary and never reads from them, so their clients would wait forever. A worker that hangs has one
 * of them. No benchmark justifies this file; test/process/node-internals/cluster-handoffs.test.ts fails without it.
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
  // Either the worker took the connection and the primary closes its own copy, or it is offered to the next worker.
  child.on('internalMessage', (message: object) => offered.delete(Reflect.get(message, 'ack')));
  worker.once('exit', () => {
    for (const handle of offered.values()) handle.close();
    offered.clear();
  });
}

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function';
}
