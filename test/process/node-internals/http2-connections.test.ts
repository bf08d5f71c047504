/** Tests the settings of every connection to a real ext_authz server. */
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { afterEach, expect, it, jest } from '@jest/globals';
import { StreamTable } from '../../../src/process/node-internals/http2-stream-table.ts';
import { useExtAuthzServers } from '../../support/points/check-servers.ts';
import { waitFor } from '../../support/wait.ts';

/** The initial window of a connection: RFC 9113 section 6.9.2. */
const FIRST_WINDOW_BYTES = 65_535;
const STREAMS = 1_024;
const CHECK_BYTES = 4_000;

const sessions: ClientHttp2Session[] = [];
// Before the servers stop: a server that is forced to stop ends open sessions with an error.
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy();
  jest.restoreAllMocks();
});
const { open } = useExtAuthzServers(64 * 1024);

it('each connection has a window for a Check on every stream', async () => {
  const { address } = await open();
  for (let connection = 0; connection < 3; connection += 1) {
    const session = connect(`http://${address}`);
    sessions.push(session);
    const room = await waitFor('a wider window', () => {
      const { remoteWindowSize = 0 } = session.state;
      return remoteWindowSize > FIRST_WINDOW_BYTES ? remoteWindowSize : undefined;
    });
    expect(room).toBeGreaterThanOrEqual(STREAMS * CHECK_BYTES);
  }
});

it('each connection has a stream table that forgets closed streams', async () => {
  const { address } = await open();
  const [kept, left] = [
    jest.spyOn(StreamTable.prototype, 'set'),
    jest.spyOn(StreamTable.prototype, 'delete'),
  ];
  for (let connection = 1; connection <= 3; connection += 1) {
    const session = connect(`http://${address}`);
    sessions.push(session);
    const stream = session.request({ ':method': 'POST', ':path': '/unknown/Method' });
    await once(stream.end().resume(), 'close');
    await waitFor('the stream to be forgotten', () => left.mock.results.length === connection || undefined);
    expect(kept).toHaveBeenCalledTimes(connection);
    expect(left.mock.results.at(-1)?.value).toBe(true);
  }
});
