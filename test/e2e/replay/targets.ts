/** Ways to present a proof: to a verifier process over gRPC, through a real Envoy, or to a store that is known to be wrong. */

import {
  headerValues,
  type WireClient,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import {
  type CheckClient,
  openCheckClient,
  outcomeOfResponse,
  rpcCode,
} from '../../support/harness/check-client.ts';
import type { TestRedisServer } from '../../support/harness/redis-server.ts';
import type { Proof } from './proof-source.ts';

export interface Target {
  readonly name: string;
  /** `allowed`, or `reason/detail status`. Never rejects. */
  present(proof: Proof): Promise<string>;
  close(): void;
}

export function grpcTarget(name: string, address: string): Target {
  const client: CheckClient = openCheckClient(address);
  return {
    name,
    present: async ({ checkRequest }) => {
      const answer = client.checkBytes(checkRequest);
      return answer.then(outcomeOfResponse, async () => `rpc ${await rpcCode(answer)}`);
    },
    close: () => client.close(),
  };
}

export function envoyTarget(name: string, client: WireClient): Target {
  return {
    name,
    present: ({ request }) => client.send(request).then(outcomeOfHttp, (error: Error) => error.message),
    close: () => undefined,
  };
}

/**
 * What the fence is there for: a store that remembers each proof with `SET NX`, and trusts Redis to be the one that it was.
 * A campaign that finds nothing wrong with this one proves nothing.
 */
export function naiveTarget(
  name: string,
  redis: () => Promise<TestRedisServer> | TestRedisServer,
  keyPrefix = 'naive:',
): Target {
  return {
    name,
    present: async ({ jti }) => {
      try {
        const server = await redis();
        const answer = await server.ask('SET', keyPrefix + jti, '1', 'NX', 'EX', '310');
        return answer === 'OK' ? 'allowed' : 'jti_replay 403';
      } catch (error) {
        return error instanceof Error ? 'replay_store_unavailable/store 503' : 'unknown';
      }
    },
    close: () => undefined,
  };
}

function outcomeOfHttp(response: WireResponse): string {
  const [reason] = headerValues(response.headers, 'x-proofgate-reason');
  if (reason === undefined) return response.status === 200 ? 'allowed' : `${response.status}`;
  const { detail }: { readonly detail?: string } = JSON.parse(response.body.toString());
  return `${reason}${detail === undefined ? '' : `/${detail}`} ${response.status}`;
}
