/** The body of a request as a separate stream for the upstream, whose end must not close the client's connection. */
import { Readable } from 'node:stream';
import type { StreamedBody } from './client-exchange.ts';

/** The client sent its body too slowly. */
export class BodyTimeout extends Error {
  override readonly name = 'BodyTimeout';
}

/** @param idleTimeoutMs maximum time between two parts of the body */
export function bodyStream({ isComplete, stream }: StreamedBody, idleTimeoutMs: number): Readable {
  const copy = new Readable({
    read: () => {
      timer.refresh();
      stream.resume();
    },
    destroy: (error, callback) => {
      clearTimeout(timer);
      stream.off('data', take);
      stream.off('end', finish);
      stream.off('close', finish);
      stream.pause();
      callback(error);
    },
  });
  const take = (chunk: Buffer) => {
    timer.refresh();
    if (!copy.push(chunk)) stream.pause();
  };
  const finish = () => {
    if (isComplete()) copy.push(null);
    else copy.destroy(new Error('the client left'));
  };
  const timer = setTimeout(() => copy.destroy(new BodyTimeout('the client is too slow')), idleTimeoutMs);
  stream.on('data', take);
  stream.on('end', finish);
  stream.on('close', finish);
  stream.pause();
  return copy;
}
