/** What a broker serves about its keys: the discovery document and the key set. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PublicKey } from '../../../src/protocol/public-key.ts';

export interface BrokerKeyServer {
  readonly url: string;
  /** Paths asked for. */
  readonly asked: readonly string[];
  discovery: object;
  /** Status and body of the key set; `location` redirects. */
  keySet: { readonly status?: number; readonly body: unknown; readonly location?: string };
  close(): Promise<void>;
}

export async function startBrokerKeyServer(issuer: string): Promise<BrokerKeyServer> {
  const asked: string[] = [];
  const http = createServer(({ url: path = '' }, response) => {
    asked.push(path);
    const isDiscovery = path === '/.well-known/proofgate-broker';
    const { status = 200, body, location } = isDiscovery ? { body: server.discovery } : server.keySet;
    const headers = location === undefined ? {} : { location };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server: BrokerKeyServer = {
    url,
    asked,
    discovery: { issuer, jwks_uri: `${url}/jwks.json` },
    keySet: { body: { keys: [] } },
    close: () =>
      new Promise((resolve) => {
        http.closeAllConnections();
        http.close(() => resolve());
      }),
  };
  return server;
}

/** A key as the broker publishes it. */
export function publishedKey(kid: string, { jwk, algorithm }: PublicKey, more: object = {}): object {
  return { ...jwk, kid, alg: algorithm, use: 'sig', trust_domain: 'shop.example', ...more };
}
