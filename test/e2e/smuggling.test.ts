/**
 * Tests that headers which only the verifier may set never reach the upstream from a caller, in any spelling: with the shipped
 * configuration, and with all of Envoy's own defences off.
 */
import { describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  NoResponse,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client, sendBytes } from '../../src/tools/conformance/wire/http1.ts';
import { type ConfigEdit, shipped } from '../support/harness/envoy-config.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { type GatewayVariant, useEnvironment } from '../support/site/environment.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../support/site/gateway.ts';
import { AUTHORITY, ROUTES } from '../support/site/routes.ts';
import { type RequestPlan, sign, signedRequest, withMoreHeaders } from '../support/site/signed-request.ts';
import { cgiName, isForbidden, SMUGGLED_NAMES } from '../support/site/smuggled-headers.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const { createOrder, readOrder } = ROUTES;
const marker = 'smuggled';
const environment = useEnvironment(['usual']);

const filters = [...shipped.connectionManager, 'http_filters'];
const allowUnderscores: ConfigEdit = {
  path: [...shipped.connectionManager, 'common_http_protocol_options', 'headers_with_underscores_action'],
  value: 'ALLOW',
};
const noHeaderMutation: ConfigEdit = { path: [...filters, 0] };

const SHIPPED: GatewayVariant = { name: 'shipped' };
const SHIPPED_H2C: GatewayVariant = { name: 'shipped, h2c upstream', upstream: { protocol: 'h2c' } };
const SIDECAR_ALONE: GatewayVariant = {
  name: 'the verifier alone',
  edits: [allowUnderscores, noHeaderMutation],
};
const MERGED: GatewayVariant = {
  name: 'the verifier alone, merged headers',
  edits: [allowUnderscores, { path: [...shipped.extAuthz, 'encode_raw_headers'] }, noHeaderMutation],
};

const signed = (plan: Partial<RequestPlan> = {}) =>
  signedRequest(environment.site, { caller: derivedKeyCaller(environment.site), route: readOrder, ...plan });

/** The headers that the upstream may have from the verifier, by their CGI names. */
const CONTEXT = [
  'X_PROOFGATE_AUTH_SITE',
  'X_PROOFGATE_BUNDLE_REVISION',
  'X_PROOFGATE_CLIENT_ID',
  'X_PROOFGATE_DECISION_ID',
  'X_PROOFGATE_ISSUER',
  'X_PROOFGATE_KEY_BINDING',
  'X_PROOFGATE_KEY_ID',
  'X_PROOFGATE_ROUTE_ID',
  'X_PROOFGATE_SUBJECT',
  'X_PROOFGATE_TRUST_DOMAIN',
];

/** Statuses of a rejection for the request's content. 503 means that there was no decision. */
const REFUSALS = [400, 401, 403];

/** What became of a request: forwarded with nothing but the verifier's own words, refused, or what must not be. */
type Fate = 'cleaned' | 'refused' | 'smuggled' | `not forwarded, ${number}`;
async function fateOf(gateway: Gateway, protocol: Protocol, request: WireRequest): Promise<Fate> {
  gateway.upstream.clear();
  const status = await statusOf(gateway, protocol, request);
  const [arrived] = gateway.upstream.requests;
  if (arrived === undefined) return REFUSALS.includes(status) ? 'refused' : `not forwarded, ${status}`;
  const lines = [...arrived.headers, ...arrived.trailers].filter(([name]) => isForbidden(name));
  const isClean =
    lines
      .map(([name]) => cgiName(name))
      .sort()
      .join() === CONTEXT.join() && lines.every(([, value]) => !value.includes(marker));
  return isClean && headerValues(arrived.headers, 'authorization').length === 0 ? 'cleaned' : 'smuggled';
}

async function statusOf(gateway: Gateway, protocol: Protocol, request: WireRequest): Promise<number> {
  try {
    return (await gateway.client(protocol).send(request)).status;
  } catch (error) {
    if (error instanceof NoResponse && error.kind !== 'timeout') return 400;
    throw error;
  }
}

const repeated = (name: string): readonly HeaderLine[] => [
  [name, marker],
  ['x-other', 'o'],
  [name, `${marker} again`],
];

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  describe.each(PROTOCOLS)('%s', (protocol) => {
    const names =
      protocol === 'HTTP/1.1'
        ? SMUGGLED_NAMES
        : [...new Set(SMUGGLED_NAMES.map((name) => name.toLowerCase()))];

    async function fatesOf(variant: GatewayVariant): Promise<ReadonlyMap<string, string>> {
      const gateway = await environment.gateway(version, 'usual', variant);
      const fates = new Map<string, string>();
      for (const name of names) {
        const once = await fateOf(gateway, protocol, withMoreHeaders(signed(), [[name, marker]]));
        const twice = await fateOf(gateway, protocol, withMoreHeaders(signed(), repeated(name)));
        fates.set(name, once === twice ? once : `${once}; twice: ${twice}`);
      }
      return fates;
    }

    it.each([SHIPPED, SHIPPED_H2C])('no name arrives, those with _ are refused: $name', async (variant) => {
      const expected = names.map((name) => [name, name.includes('_') ? 'refused' : 'cleaned'] as const);
      expect(await fatesOf(variant)).toEqual(new Map(expected));
    });

    it.each([SIDECAR_ALONE, MERGED])('no name arrives: $name', async (variant) => {
      expect(await fatesOf(variant)).toEqual(new Map(names.map((name) => [name, 'cleaned'])));
    });

    it.each([SHIPPED, SIDECAR_ALONE, MERGED])('a second credential is refused: $name', async (variant) => {
      const gateway = await environment.gateway(version, 'usual', variant);
      for (const name of ['authorization', 'x-proofgate-transcript', 'x-proofgate-signature']) {
        const [value = ''] = headerValues(signed().headers ?? [], name);
        expect(await fateOf(gateway, protocol, withMoreHeaders(signed(), [[name, value]]))).toBe('refused');
      }
    });

    it.each([SHIPPED, SHIPPED_H2C])('no trailer arrives: $name', async (variant) => {
      const gateway = await environment.gateway(version, 'usual', variant);
      const trailers = ['x-proofgate-subject', 'x-proofgate-roles', 'x-original-url', 'x-t'].map(
        (name): HeaderLine => [name, marker],
      );
      const request = { ...signed({ route: createOrder, body: '{}' }), trailers };
      expect(await fateOf(gateway, protocol, request)).toBe('cleaned');
      expect(gateway.upstream.requests[0]?.trailers).toEqual([]);
    });

    it('what the API says under the names of a denial reaches neither caller nor access log', async () => {
      const answerHeaders = [
        ['x-proofgate-reason', 'jti_replay'],
        ['x-proofgate-decision-id', marker],
      ] as const;
      const gateway = await environment.gateway(version, 'usual', {
        name: 'echoing',
        upstream: { answerHeaders },
      });
      const response = await gateway.client(protocol).send(signed());
      expect(response.status).toBe(200);
      expect(response.headers.filter(([name]) => isForbidden(name))).toEqual([]);
      const [arrived] = gateway.upstream.requests.slice(-1);
      const [decisionId = ''] = headerValues(arrived?.headers ?? [], 'x-proofgate-decision-id');
      const line = await waitFor('the access log line', () =>
        gateway.envoy.accessLog.find((text) => text.includes(decisionId)),
      );
      expect(JSON.parse(line)).toMatchObject({ status: 200, decision_id: decisionId });
      expect(line).not.toMatch(/smuggled|jti_replay/);
    });
  });

  it.each([SHIPPED, SIDECAR_ALONE, MERGED])(
    'Connection takes nothing of ours away: $name',
    async (variant) => {
      const gateway = await environment.gateway(version, 'usual', variant);
      for (const names of ['x-proofgate-subject', 'close, x-proofgate-subject, x-proofgate-key-binding']) {
        const request = withMoreHeaders(signed(), [
          ['Connection', names],
          ['X-Proofgate-Subject', marker],
        ]);
        expect(await fateOf(gateway, 'HTTP/1.1', request)).toBe('cleaned');
        expect(headerValues(gateway.upstream.requests[0]?.headers ?? [], 'connection').join()).not.toContain(
          'proofgate',
        );
      }
      const unproven = withMoreHeaders(signed(), [['Connection', 'x-proofgate-signature']]);
      expect(await fateOf(gateway, 'HTTP/1.1', unproven)).toBe('refused');
    },
  );

  it.each([
    ['a space before the colon', 'X-Proofgate-Subject : smuggled'],
    ['a folded line', 'X-A: b\r\n X-Proofgate-Subject: smuggled'],
    ['a folded name', 'X-Proofgate-\r\n Subject: smuggled'],
    ['a bare carriage return', 'X-A: b\rX-Proofgate-Subject: smuggled'],
    ['a NUL', 'X-Proofgate-Subject\0: smuggled'],
    ['a letter that is not ASCII', 'X-Proofgate-Subjéct: smuggled'],
    ['an empty name', ': smuggled\r\nX-Proofgate-Subject: smuggled'],
  ])('HTTP/1.1 header lines with %s', async (_what, line) => {
    for (const variant of [SHIPPED, SIDECAR_ALONE]) {
      const gateway = await environment.gateway(version, 'usual', variant);
      expect(['cleaned', 'refused']).toContain(await rawFateOf(gateway, line));
    }
  });
});

/** The outcome of a signed GET with one raw header line. */
async function rawFateOf(gateway: Gateway, line: string): Promise<Fate> {
  const { passport, proof } = sign(environment.site, {
    caller: derivedKeyCaller(environment.site),
    route: readOrder,
  });
  const text = [
    'GET /v1/orders/4711 HTTP/1.1',
    `Host: ${AUTHORITY}`,
    `Authorization: Passport ${passport}`,
    `X-Proofgate-Transcript: ${proof.transcript}`,
    `X-Proofgate-Signature: ${proof.signature}`,
    line,
  ].join('\r\n');
  const client = {
    ...http1Client(gateway.envoy),
    send: () => sendBytes(gateway.envoy, Buffer.from(`${text}\r\n\r\n`, 'utf8'), 'GET'),
  };
  const raw = { ...gateway, client: () => client };
  return fateOf(raw, 'HTTP/1.1', { method: 'GET', target: '', authority: '' });
}
