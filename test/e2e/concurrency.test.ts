/** Tests one proof, presented many times at once: on each path, exactly one request is allowed. */
import { describe, expect, it } from '@jest/globals';
import { headerValues, type WireResponse } from '../../src/tools/conformance/wire/exchange.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { useEnvironment } from '../support/site/environment.ts';
import type { Gateway } from '../support/site/gateway.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import type { VerifierState } from '../support/site/verifier-states.ts';
import { ENVOYS_AT_ONCE } from './lane-envoys.ts';

const repetitions = 50;
const rounds = 5;

const environment = useEnvironment(['usual', 'redis', 'redis_twin']);

/** The last one where a busy machine has Redis answer late. */
const OUTCOMES = ['200', '403 jti_replay', '503 replay_store_unavailable'];

const ways: readonly (readonly [string, readonly VerifierState[]])[] = [
  ['one verifier, in memory', ['usual']],
  ['one verifier, in Redis', ['redis']],
  ['two verifiers, one Redis', ['redis', 'redis_twin']],
];

describe.each(ways)('%s', (_what, states) => {
  it('lets one of fifty through, over every Envoy and protocol at once', async () => {
    const gateways: Gateway[] = [];
    for (const state of states) {
      for (const version of ENVOYS_AT_ONCE) gateways.push(await environment.gateway(version, state));
    }
    const clients = gateways.flatMap((gateway) => gateway.clients);
    for (let round = 0; round < rounds; round += 1) {
      for (const { upstream } of gateways) upstream.clear();
      const request = signedRequest(environment.site, {
        caller: derivedKeyCaller(environment.site),
        route: ROUTES.createOrder,
        body: '{"item":1}',
      });
      const sending = Array.from({ length: repetitions }, (_, at) => clients[at % clients.length]);
      const responses = await Promise.all(sending.map((client) => client?.send(request)));
      const outcomes = responses.map((response) => outcomeOf(response));
      expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(1);
      expect(OUTCOMES).toEqual(expect.arrayContaining(outcomes));
      expect(gateways.flatMap(({ upstream }) => upstream.requests)).toHaveLength(1);
    }
  });
});

function outcomeOf(response: WireResponse | undefined): string {
  const [reason] = headerValues(response?.headers ?? [], 'x-proofgate-reason');
  return reason === undefined ? `${response?.status}` : `${response?.status} ${reason}`;
}
