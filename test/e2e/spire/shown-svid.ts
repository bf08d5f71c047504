/** Asks the broker for passports with an SVID that a test kept, over a connection that a test can keep, too. */
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { API_AUDIENCE } from './broker-site.ts';
import type { BrokerStage } from './broker-stage.ts';
import type { PemSvid } from './spire-agent.ts';

/** Flags of a broker that is asked until its answer changes. */
export const OFTEN = ['--address-rate', '10000', '--identity-rate', '10000'];

export const PASSPORT: BrokerAnswer = { status: 200, code: '' };

export interface BrokerAnswer {
  readonly status: number;
  /** Of the problem document; empty for a passport. */
  readonly code: string;
}

export interface ShownSvid {
  /** On the one connection, which is made anew when the broker has closed it. */
  passport(): Promise<BrokerAnswer>;
  /** TLS connections so far. */
  connections(): number;
  close(): void;
}

/** An mTLS client that presents the SVID. */
export function showSvid(
  { broker, certificates }: BrokerStage,
  { chain, key }: Pick<PemSvid, 'chain' | 'key'>,
): ShownSvid {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, cert: chain, key, ca: certificates.ca.cert });
  let connections = 0;
  const url = `${broker.url}/v1/passports`;
  async function passport(): Promise<BrokerAnswer> {
    const body = JSON.stringify({ audience: API_AUDIENCE, proof: { kind: 'mtls' } });
    const call = request(url, { agent, method: 'POST', headers: { 'content-type': 'application/json' } });
    call.on('socket', (socket) => {
      if (socket.connecting) connections += 1;
    });
    call.end(body);
    const [response] = await once(call, 'response');
    const chunks: Buffer[] = await response.toArray();
    const { code = '' }: { readonly code?: string } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    return { status: response.statusCode, code };
  }
  return { passport, connections: () => connections, close: () => agent.destroy() };
}
