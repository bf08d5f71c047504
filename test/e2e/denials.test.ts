/**
 * Provokes every reason for a denial with a real request through a real Envoy, and checks it in each place: status, problem
 * body, headers, audit event, metric and access log. No denied request reaches the upstream.
 */
import { describe, expect, it } from '@jest/globals';
import { REASONS, type Reason } from '../../src/protocol/reasons.ts';
import type { WireRequest } from '../../src/tools/conformance/wire/exchange.ts';
import type { Provocation } from '../support/cases/denial-case.ts';
import { ENVOY_DENIALS } from '../support/cases/on-wire.ts';
import { useEnvironment } from '../support/site/environment.ts';
import { PROTOCOLS } from '../support/site/gateway.ts';
import { expectDenial, observe } from '../support/site/observe.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const STATES = [...new Set(ENVOY_DENIALS.map(({ state }) => state))];

const environment = useEnvironment(STATES);

it('leaves no reason out', () => {
  expect(new Set(ENVOY_DENIALS.map(({ reason }) => reason))).toEqual(new Set(REASONS));
});

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  const denied = new Map<string, Reason>();

  describe.each(PROTOCOLS)('%s', (protocol) => {
    it.each(ENVOY_DENIALS)('$name', async (denial) => {
      const gateway = await environment.gateway(version, denial.state);
      const client = gateway.client(protocol);
      const requests = requestsOf(denial.provoke(environment.site));
      if (requests.allowed !== undefined) expect((await client.send(requests.allowed)).status).toBe(200);
      const observed = await observe(gateway, client, requests.denied);
      denied.set(await expectDenial(gateway, observed, denial), denial.reason);
    });
  });

  it('has each of them in the access log, by decision and reason', async () => {
    const gateways = await Promise.all(STATES.map((one) => environment.gateway(version, one)));
    const reasons = await waitFor('the last lines of the access log', () => {
      const logged = reasonsByDecision(gateways.flatMap(({ envoy }) => envoy.accessLog));
      return [...denied.keys()].every((id) => logged.has(id)) ? logged : undefined;
    });
    for (const [id, reason] of denied) expect(reasons.get(id)).toBe(reason);
  });
});

interface LoggedExchange {
  readonly decision_id: string;
  readonly reason: string;
}

function reasonsByDecision(lines: readonly string[]): ReadonlyMap<string, string> {
  const exchanges = lines.map((line): LoggedExchange => JSON.parse(line));
  return new Map(exchanges.map(({ decision_id, reason }) => [decision_id, reason]));
}

function requestsOf(provocation: Provocation): { allowed?: WireRequest; denied: WireRequest } {
  if ('method' in provocation) return { denied: provocation };
  const [allowed, denied] = provocation;
  return { allowed, denied };
}
