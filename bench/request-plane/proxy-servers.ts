/**
 * The parties around a proxy, as child processes of the benchmark: an API that answers an empty 200, and a bare proxy, which
 * forwards with undici and checks nothing.
 * Usage: node proxy-servers.js JOB, a {@link ProxyJob} as JSON. Prints its port.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

export interface ProxyJob {
  /** Where the bare proxy forwards to; undefined: this is the API. */
  readonly upstream?: string;
}

function bareProxy(upstream: string): (request: IncomingMessage, response: ServerResponse) => void {
  const pool = new Pool(upstream);
  return ({ headers, method = '', url = '' }, response) => {
    const { connection: _hop, ...forwarded } = headers;
    pool.dispatch(
      { path: url, method, headers: forwarded },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status, answered) => {
          const { connection: _own, 'keep-alive': _alive, ...kept } = answered;
          response.writeHead(status, kept);
        },
        onResponseData: (_controller, chunk) => void response.write(chunk),
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  };
}

process.on('SIGTERM', () => process.exit(0));
const { upstream }: ProxyJob = JSON.parse(process.argv[2] ?? '{}');
const answer = (_request: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-length': 0 }).end();
const server = createServer(upstream === undefined ? answer : bareProxy(upstream));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
