/** Tests facts about Envoy that the verifier relies on: what a Check contains of the request's body and trailers. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { type ConfigEdit, shipped } from '../support/harness/envoy-config.ts';
import {
  checkedHttp,
  checkedValues,
  forwardedRequest,
  type Measurement,
  type RecordedEnvoy,
  startRecordedEnvoy,
  useRecordedEnvoys,
} from '../support/harness/fixture.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const startForTest = useRecordedEnvoys();

const post = { method: 'POST', target: '/', authority: 'api.example' } as const;
const get = { ...post, method: 'GET' } as const;
const partialBody = 'x-envoy-auth-partial-body';
const maxRequestBytes = 1_048_576;

interface SeenBody {
  readonly partial: readonly string[];
  readonly bytes: number;
  readonly size: number;
}

function seenBody(measured: Measurement): SeenBody {
  const http = checkedHttp(measured);
  return { partial: checkedValues(measured, partialBody), bytes: http.raw_body.length, size: http.size };
}

const none: SeenBody = { partial: [], bytes: 0, size: 0 };
const exactlyNothing: SeenBody = { partial: ['false'], bytes: 0, size: 0 };
const exactly3: SeenBody = { partial: ['false'], bytes: 3, size: 3 };

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    recorded = await startRecordedEnvoy(version);
  });
  afterAll(() => recorded.stop());

  describe.each(['http1', 'http2'] as const)('%s', (client) => {
    const body = Buffer.of(0x61, 0xff, 0x00);

    it.each<[string, WireRequest, SeenBody]>([
      ['GET without a body', get, none],
      ['POST without a body', post, none],
      ['POST of announced length 0', { ...post, framing: 'length' }, none],
      ['POST of unannounced length that turns out empty', { ...post, framing: 'open' }, exactlyNothing],
      ['GET of unannounced length that turns out empty', { ...get, framing: 'open' }, exactlyNothing],
      ['POST of announced length', { ...post, body, framing: 'length' }, exactly3],
      ['POST of unannounced length', { ...post, body, framing: 'open' }, exactly3],
      ['GET with a body', { ...get, body, framing: 'length' }, exactly3],
      ['POST with trailers', { ...post, body, trailers: [['x-t', '1']] }, exactly3],
    ])('%s', async (_what, request, expected) => {
      expect(seenBody(await recorded.measure(recorded[client], request))).toEqual(expected);
    });

    it('packs the exact bytes, and leaves the text field empty', async () => {
      const seen = checkedHttp(await recorded.measure(recorded[client], { ...post, body }));
      expect(seen.raw_body).toEqual(body);
      expect(seen.body).toHaveLength(0);
    });

    it('does not forward the marker', async () => {
      const measured = await recorded.measure(recorded[client], { ...post, body });
      expect(headerValues(forwardedRequest(measured).headers, partialBody)).toEqual([]);
    });

    it('has a body of exactly max_request_bytes whole', async () => {
      const measured = await recorded.measure(recorded[client], {
        ...post,
        body: Buffer.alloc(maxRequestBytes, 7),
      });
      expect(seenBody(measured)).toEqual({
        partial: ['false'],
        bytes: maxRequestBytes,
        size: maxRequestBytes,
      });
    });

    it('answers 413 to more than that, without a Check', async () => {
      const large = Buffer.alloc(maxRequestBytes + 65_536, 7);
      const measured = await recorded.measure(recorded[client], { ...post, body: large, framing: 'length' });
      expect([measured.response.status, measured.checks.length]).toEqual([413, 0]);
    });
  });

  it('answers 413 to one byte more in HTTP/1.1', async () => {
    const measured = await recorded.measure(recorded.http1, {
      ...post,
      body: Buffer.alloc(maxRequestBytes + 1, 7),
    });
    expect([measured.response.status, measured.checks.length]).toEqual([413, 0]);
  });

  it('asks about a cut body in HTTP/2 when only its last frame is too much, and would forward the whole', async () => {
    const measured = await recorded.measure(recorded.http2, {
      ...post,
      body: Buffer.alloc(maxRequestBytes + 1, 7),
    });
    expect(seenBody(measured)).toEqual({
      partial: ['true'],
      bytes: maxRequestBytes,
      size: maxRequestBytes + 1,
    });
    expect(forwardedRequest(measured).body.length).toBe(maxRequestBytes + 1);
  });

  it('has no marker for HTTP/2 trailers behind no data at all', async () => {
    const measured = await recorded.measure(recorded.http2, { ...post, trailers: [['x-t', '1']] });
    expect(seenBody(measured)).toEqual(none);
  });

  it('refuses an upgrade to websocket by itself, body or not', async () => {
    const headers: readonly HeaderLine[] = [
      ['Connection', 'Upgrade'],
      ['Upgrade', 'websocket'],
    ];
    const measured = await recorded.measure(recorded.http1, { ...get, headers, body: 'abc' });
    expect([measured.response.status, measured.checks.length]).toEqual([403, 0]);
  });

  it('ignores an upgrade to h2c, and has the body whole', async () => {
    const headers: readonly HeaderLine[] = [
      ['Connection', 'Upgrade, HTTP2-Settings'],
      ['Upgrade', 'h2c'],
      ['HTTP2-Settings', 'AAMAAABk'],
    ];
    const measured = await recorded.measure(recorded.http1, { ...post, headers, body: 'abc' });
    expect(seenBody(measured)).toEqual(exactly3);
    expect(headerValues(forwardedRequest(measured).headers, 'upgrade')).toEqual([]);
  });

  it.each(['http1', 'http2'] as const)(
    'answers Expect: 100-continue by itself and drops it, %s',
    async (client) => {
      const headers = [['expect', '100-continue']] as const;
      const measured = await recorded.measure(recorded[client], { ...post, headers, body: 'abc' });
      expect(seenBody(measured)).toEqual(exactly3);
      expect(checkedValues(measured, 'expect')).toEqual([]);
    },
  );
});

const unbuffered: ConfigEdit = {
  path: [...shipped.virtualHost, 'routes', 0, 'typed_per_filter_config'],
  value: {
    'envoy.filters.http.ext_authz': {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute',
      check_settings: { disable_request_body_buffering: true },
    },
  },
};

/** Where the body goes unread, the verifier must not take "no marker" for "no body". */
describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  it.each<[string, ConfigEdit]>([
    ['a route without buffering', unbuffered],
    ['no with_request_body', { path: [...shipped.extAuthz, 'with_request_body'] }],
  ])('with %s: no marker, and a body of unannounced length leaves no trace at all', async (_what, edit) => {
    const recorded = await startForTest(version, { edits: [edit] });
    const announced = await recorded.measure(recorded.http1, { ...post, body: 'abc' });
    const chunked = await recorded.measure(recorded.http1, { ...post, body: 'abc', framing: 'open' });
    const silent = await recorded.measure(recorded.http2, { ...post, body: 'abc' });
    for (const measured of [announced, chunked, silent]) {
      expect(seenBody(measured)).toMatchObject({ partial: [], bytes: 0 });
      expect(forwardedRequest(measured).body.toString()).toBe('abc');
    }
    expect(checkedValues(announced, 'content-length')).toEqual(['3']);
    for (const measured of [chunked, silent]) {
      expect(checkedValues(measured, 'content-length')).toEqual([]);
      expect(checkedValues(measured, 'transfer-encoding')).toEqual([]);
    }
  });

  it("never takes a caller's own marker for its own, but would forward it", async () => {
    const path = [
      ...shipped.connectionManager,
      'http_filters',
      0,
      'typed_config',
      'mutations',
      'request_mutations',
    ];
    const recorded = await startForTest(version, { edits: [{ path }] });
    for (const client of [recorded.http1, recorded.http2]) {
      const measured = await recorded.measure(client, { ...post, headers: [[partialBody, 'false']] });
      expect(seenBody(measured)).toEqual(none);
      expect(headerValues(forwardedRequest(measured).headers, partialBody)).toEqual(['false']);
    }
  });

  it('with upgrades switched on: neither body nor marker, but the upgrade header', async () => {
    const edit = {
      path: [...shipped.connectionManager, 'upgrade_configs'],
      value: [{ upgrade_type: 'websocket' }],
    };
    const recorded = await startForTest(version, { edits: [edit] });
    recorded.authz.behave({ status: { code: 7 }, denied_response: { status: { code: 403 } } });
    const measured = await recorded.measure(recorded.http1, {
      ...get,
      headers: [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'websocket'],
      ],
      body: 'abc',
    });
    expect(seenBody(measured)).toMatchObject({ partial: [], bytes: 0 });
    expect(checkedValues(measured, 'upgrade')).toEqual(['websocket']);
  });
});

describe.each(LANE_ENVOYS)('Envoy %s before an HTTP/2 upstream', (version) => {
  const request = { ...post, body: 'abc', trailers: [['x-proofgate-subject', 'me']] } as const;
  const trailersFilter: ConfigEdit = {
    path: [
      ...shipped.connectionManager,
      'http_filters',
      0,
      'typed_config',
      'mutations',
      'request_trailers_mutations',
    ],
  };

  async function trailersThrough(edits: readonly ConfigEdit[], client: 'http1' | 'http2') {
    const recorded = await startForTest(version, { upstreamProtocol: 'h2c', edits });
    return forwardedRequest(await recorded.measure(recorded[client], request)).trailers;
  }

  it('drops every trailer', async () => {
    expect(await trailersThrough([], 'http2')).toEqual([]);
    expect(await trailersThrough([], 'http1')).toEqual([]);
  });

  it('would pass HTTP/2 trailers on, unchecked, if they were not removed', async () => {
    expect(await trailersThrough([trailersFilter], 'http2')).toEqual([['x-proofgate-subject', 'me']]);
    expect(await trailersThrough([trailersFilter], 'http1')).toEqual([]);
  });
});
