/**
 * Writes one HTTP/1 case, then a well-formed request on the same connection, and collects whatever comes back. The second
 * request shows whether the point and the caller still agree where a request begins.
 */

import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { openSocket } from '../../../src/tools/conformance/wire/http1.ts';
import type { Http1Case } from './cases.ts';
import type { Template } from './template.ts';

/** The bytes of answers, by HTTP/2 stream; stream 0 is an HTTP/1 connection. */
export interface Answers {
  readonly byStream: ReadonlyMap<number, Buffer>;
}

/** How long a connection may be silent before the next write, and before the end. */
const QUIET_MS = 150;
/** Between the writes of a case: the point then sees them apart. */
const BETWEEN_WRITES_MS = 10;

/** @param last is written last; it asks for the connection to be closed */
export async function attackHttp1(
  address: WireAddress,
  one: Http1Case,
  template: Template,
  last: string,
): Promise<Answers> {
  const socket = openSocket(address);
  const chunks: Buffer[] = [];
  let isClosed = false;
  let onActivity = (): void => undefined;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    onActivity();
  });
  for (const event of ['end', 'close', 'error']) {
    socket.on(event, () => {
      isClosed = true;
      onActivity();
    });
  }
  const quiet = (ms: number) =>
    new Promise<void>((resolve) => {
      if (isClosed) return resolve();
      const timer = setTimeout(resolve, ms);
      onActivity = () => {
        timer.refresh();
        if (isClosed) resolve();
      };
    });
  for (const [index, text] of one.writes.entries()) {
    if (index > 0) await quiet(BETWEEN_WRITES_MS);
    if (!isClosed) socket.write(Buffer.from(template.fill(text), 'latin1'));
  }
  await quiet(QUIET_MS);
  if (!isClosed) {
    socket.write(last);
    await quiet(QUIET_MS);
  }
  socket.destroy();
  return { byStream: new Map([[0, Buffer.concat(chunks)]]) };
}
