/**
 * Tests how many headers a request may have: Envoy counts again after it adds the verifier's headers, and rejects the request
 * itself.
 */
import { describe, expect, it } from '@jest/globals';
import { type HeaderLine, headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { useEnvironment } from '../support/site/environment.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const environment = useEnvironment(['usual']);

const caseOf = (lines: number, ...expected: readonly (number | string)[]) => ({ lines, expected });

/** Of the shipped `max_headers_count: 100`; lines beside `Host`, the proof's three among them. */
const CASES = [
  caseOf(80, 200, '', 1),
  caseOf(90, 503, 'verifier_unavailable', 0),
  // Envoy's own limit: it sends no Check.
  caseOf(110, 431, '', 0),
];

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  it.each(CASES)('answers a request with $lines headers: $expected', async ({ lines, expected }) => {
    const gateway = await environment.gateway(version);
    const others = Array.from({ length: lines - 3 }, (_, at): HeaderLine => [`x-extra-${at}`, '1']);
    gateway.upstream.clear();
    const request = signedRequest(environment.site, {
      caller: derivedKeyCaller(environment.site),
      route: ROUTES.readOrder,
      otherHeaders: others,
    });
    const { headers, status } = await gateway.client('HTTP/1.1').send(request);
    const [reason = ''] = headerValues(headers, 'x-proofgate-reason');
    expect([status, reason, gateway.upstream.requests.length]).toEqual(expected);
  });
});
