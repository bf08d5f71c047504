/** What an upstream may see of an allowed request: what was signed, the verifier's context headers, and no credentials. */
import { expect } from '@jest/globals';
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import { decodeTranscript, parseTranscript } from '../../src/protocol/transcript.ts';
import { AUTHORIZATION_HEADER, CONTEXT_HEADERS, PASSPORT_HEADER } from '../../src/protocol/wire-names.ts';
import { headerValues, type WireRequest } from '../../src/tools/conformance/wire/exchange.ts';
import type { UpstreamRequest } from '../support/harness/upstream.ts';
import { isForbidden } from '../support/site/smuggled-headers.ts';

/** The host that cases name beside the signed one. */
const OTHER_HOST = 'api.other.example';

export function expectForwarded(
  arrived: readonly UpstreamRequest[],
  request: WireRequest,
  snapshot: Snapshot | undefined,
): void {
  const [forwarded] = arrived;
  const header = headerValues(request.headers ?? [], 'x-proofgate-transcript')[0] ?? '';
  const signed = parseTranscript(decodeTranscript(header.trim()) ?? Buffer.alloc(0), PASSPORT_HEADER);
  if (forwarded === undefined || signed === undefined) throw new Error('nothing signed was forwarded');
  const values = (name: string) => headerValues(forwarded.headers, name);
  expect({
    requests: arrived.length,
    method: forwarded.method,
    target: forwarded.url,
    body: forwarded.body.toString('latin1'),
    signedHeaders: signed.headers.map(({ name }) => values(name)),
    trailers: forwarded.trailers.filter(([name]) => isForbidden(name)),
    otherHosts: [...values('host'), ...values(':authority')].filter((host) => host === OTHER_HOST),
  }).toEqual({
    requests: 1,
    method: signed.method,
    target: signed.target,
    body: Buffer.from(request.body ?? '').toString('latin1'),
    signedHeaders: signed.headers.map(({ value }) => [value]),
    trailers: [],
    otherHosts: [],
  });
  expectContext(forwarded, signed.keyId, snapshot);
  expect([values(CONTEXT_HEADERS.subject), values(CONTEXT_HEADERS.routeId)]).toEqual([
    [signed.subject],
    [signed.routeId],
  ]);
  const route = snapshot?.routes.match(
    signed.method,
    `http://${signed.authority}`,
    signed.target.split('?')[0] ?? '',
  );
  const keepsAuthorization =
    route?.kind === 'route' &&
    (route.route.forwardAuthorization || route.route.passportHeader === PASSPORT_HEADER);
  const sent = headerValues(request.headers ?? [], AUTHORIZATION_HEADER);
  expect(values(AUTHORIZATION_HEADER)).toEqual(keepsAuthorization ? sent : []);
}

/** Of our prefix and of rewriting headers, exactly the context headers, each once: whatever the caller sent is gone. */
function expectContext({ headers }: UpstreamRequest, keyId: string, snapshot: Snapshot | undefined): void {
  const isDerived = snapshot?.keys.get(keyId)?.kind === 'derived_key';
  const names = Object.values(CONTEXT_HEADERS).filter(
    (name) => isDerived || name !== CONTEXT_HEADERS.clientId,
  );
  const seen = headers.filter(([name]) => isForbidden(name)).map(([name]) => name.toLowerCase());
  expect(seen.sort()).toEqual(names.sort());
  expect(headerValues(headers, CONTEXT_HEADERS.keyId)).toEqual([keyId]);
}
