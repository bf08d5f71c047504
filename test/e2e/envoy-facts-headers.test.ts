/** Tests facts about Envoy that the verifier relies on: what a Check contains of the request's headers. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { shipped } from '../support/harness/envoy-config.ts';
import {
  checkedHttp,
  checkedValues,
  forwardedRequest,
  type RecordedEnvoy,
  refusedByEnvoy,
  startRecordedEnvoy,
} from '../support/harness/fixture.ts';
import { checkedHeaders } from '../support/harness/recording-authz.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const get = { method: 'GET', target: '/', authority: 'api.example' } as const;

/** Even with encode_raw_headers, two lines of these arrive as one value `1,2`: Envoy has one slot for each. */
const joinedByEnvoy = (
  'accept accept-encoding access-control-request-headers access-control-request-method authentication ' +
  'authorization cache-control cdn-loop content-encoding content-type expect grpc-accept-encoding grpc-timeout ' +
  'if-match if-modified-since if-none-match if-range if-unmodified-since origin pragma proxy-status referer ' +
  'user-agent via x-client-trace-id x-envoy-attempt-count x-envoy-is-timeout-retry x-forwarded-host ' +
  'x-forwarded-port'
).split(' ');

/** Two lines of these arrive as two entries. (Every name not listed anywhere in this file would, too.) */
const keptApart = (
  'accept-charset accept-language accept-post age baggage b3 client-cert content-digest content-disposition ' +
  'content-language content-location content-md5 date depth destination dnt dpop early-data etag expires forwarded ' +
  'from grpc-encoding idempotency-key if last-modified link location max-forwards overwrite prefer priority ' +
  'proxy-authorization range sec-fetch-mode sec-websocket-protocol server set-cookie signature signature-input ' +
  'traceparent tracestate trailer upgrade-insecure-requests vary want-digest warning x-api-key x-b3-traceid ' +
  'x-correlation-id x-csrf-token x-custom x-forwarded x-forwarded-prefix x-http-method-override x-method-override ' +
  'x-original-url x-proofgate-signature x-proofgate-transcript x-real-ip x-requested-with x-rewrite-url'
).split(' ');

/** Envoy's own, with which a caller could steer it or pass for something internal. */
const droppedByEnvoy = (
  'keep-alive proxy-connection te upgrade x-envoy-auth-partial-body x-envoy-decorator-operation ' +
  'x-envoy-downstream-service-cluster x-envoy-downstream-service-node x-envoy-expected-rq-timeout-ms ' +
  'x-envoy-force-trace x-envoy-hedge-on-per-try-timeout x-envoy-internal x-envoy-ip-tags x-envoy-max-retries ' +
  'x-envoy-original-host x-envoy-original-path x-envoy-original-url x-envoy-retriable-header-names ' +
  'x-envoy-retriable-status-codes x-envoy-retry-grpc-on x-envoy-retry-on x-envoy-upstream-alt-stat-name ' +
  'x-envoy-upstream-rq-per-try-timeout-ms x-envoy-upstream-rq-timeout-ms x-forwarded-client-cert'
).split(' ');

/** Joined as well, where a gateway behind another one leaves them as they came. */
const joinedBehindAProxy = (
  'x-envoy-decorator-operation x-envoy-downstream-service-cluster x-envoy-downstream-service-node ' +
  'x-envoy-expected-rq-timeout-ms x-envoy-external-address x-envoy-force-trace x-envoy-ip-tags ' +
  'x-envoy-max-retries x-envoy-original-host x-envoy-original-path x-envoy-original-url x-envoy-retry-on ' +
  'x-forwarded-client-cert x-forwarded-for x-request-id'
).split(' ');

/** HTTP/2 has no such headers, and says so with a reset. */
const notInHttp2 = ['keep-alive', 'proxy-connection', 'te', 'upgrade'];

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    recorded = await startRecordedEnvoy(version);
  });
  afterAll(() => recorded.stop());

  async function twice(client: 'http1' | 'http2', name: string): Promise<readonly string[]> {
    const headers = [
      [name, '1'],
      ['x-other', 'o'],
      [name, '2'],
    ] as const;
    return checkedValues(await recorded.measure(recorded[client], { ...get, headers }), name);
  }

  describe.each(['http1', 'http2'] as const)('%s', (client) => {
    const applies = (name: string) => client === 'http1' || !notInHttp2.includes(name);

    it('sends header_map, and an empty headers map', async () => {
      const seen = checkedHttp(await recorded.measure(recorded[client], { ...get, headers: [['x-a', '1']] }));
      expect(seen.headers).toEqual({});
      expect(seen.header_map?.headers).toContainEqual({ key: 'x-a', value: '', raw_value: Buffer.from('1') });
    });

    it('has the pseudo headers in header_map, in HTTP/1.1 too', async () => {
      const names = checkedHeaders(checkedHttp(await recorded.measure(recorded[client], get))).map(
        ([name]) => name,
      );
      expect(names).toEqual(expect.arrayContaining([':authority', ':method', ':path', ':scheme']));
      expect(names).not.toContain('host');
    });

    it.each(joinedByEnvoy.filter(applies))('joins repeated %s lines into one', async (name) => {
      expect(await twice(client, name)).toEqual(['1,2']);
    });

    it.each(keptApart)('keeps repeated %s lines apart', async (name) => {
      expect(await twice(client, name)).toEqual(['1', '2']);
    });

    it.each(droppedByEnvoy.filter(applies))('drops %s that a caller sends', async (name) => {
      const headers = [[name, '1']] as const;
      const measured = await recorded.measure(recorded[client], { ...get, headers });
      expect(checkedValues(measured, name)).toEqual([]);
      expect(headerValues(forwardedRequest(measured).headers, name)).toEqual([]);
    });

    it('swallows an empty line among joined ones', async () => {
      const headers = [
        ['authorization', ''],
        ['authorization', 'Passport x'],
      ] as const;
      const measured = await recorded.measure(recorded[client], { ...get, headers });
      expect(checkedValues(measured, 'authorization')).toEqual(['Passport x']);
    });

    it('writes the forwarding headers itself', async () => {
      const headers = [
        ['x-forwarded-for', '192.0.2.7'],
        ['x-forwarded-proto', 'https'],
        ['x-request-id', 'mine'],
        ['x-envoy-external-address', '192.0.2.7'],
      ] as const;
      const measured = await recorded.measure(recorded[client], { ...get, headers });
      expect(checkedValues(measured, 'x-forwarded-for')).toEqual([
        expect.stringMatching(/^192\.0\.2\.7,[0-9a-f.:]+$/),
      ]);
      expect(checkedValues(measured, 'x-forwarded-proto')).toEqual(['http']);
      expect(checkedValues(measured, 'x-request-id')).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
      expect(checkedValues(measured, 'x-envoy-external-address')).toEqual(['127.0.0.1']);
    });

    it('carries bytes that are not UTF-8 unchanged', async () => {
      const measured = await recorded.measure(recorded[client], { ...get, headers: [['x-a', '\xff\xe9']] });
      expect(checkedHttp(measured).header_map?.headers).toContainEqual({
        key: 'x-a',
        value: '',
        raw_value: Buffer.of(0xff, 0xe9),
      });
    });

    it('refuses a header name with an underscore', async () => {
      const headers = [['x_proofgate_subject', 'me']] as const;
      expect(await refusedByEnvoy(recorded, recorded[client], { ...get, headers })).toBe(true);
    });

    it('removes what only the verifier may say before it asks', async () => {
      const headers = [['x-proofgate-subject', 'me']] as const;
      const measured = await recorded.measure(recorded[client], { ...get, headers });
      expect(checkedValues(measured, 'x-proofgate-subject')).toEqual([]);
      expect(headerValues(forwardedRequest(measured).headers, 'x-proofgate-subject')).toEqual([]);
    });

    it('names the peer of the connection', async () => {
      const { checks } = await recorded.measure(recorded[client], get);
      expect(checks[0]?.attributes.source).toMatchObject({
        address: { socket_address: { address: '127.0.0.1', port_value: expect.any(Number) } },
        principal: '',
        certificate: '',
      });
    });
  });

  it('joins repeated cookie lines of HTTP/2 with "; ", not those of HTTP/1.1', async () => {
    expect(await twice('http1', 'cookie')).toEqual(['1', '2']);
    expect(await twice('http2', 'cookie')).toEqual(['1; 2']);
  });

  it('trims white space around a value in HTTP/1.1, not in HTTP/2', async () => {
    const request = { ...get, headers: [['x-a', '  a  b  ']] } as const;
    expect(checkedValues(await recorded.measure(recorded.http1, request), 'x-a')).toEqual(['a  b']);
    expect(checkedValues(await recorded.measure(recorded.http2, request), 'x-a')).toEqual(['  a  b  ']);
  });

  it('drops what the Connection header of HTTP/1.1 names, the proof included', async () => {
    const headers = [
      ['Connection', 'close, x-proofgate-signature'],
      ['X-Proofgate-Signature', 'z'],
    ] as const;
    const measured = await recorded.measure(recorded.http1, { ...get, headers });
    expect(checkedValues(measured, 'x-proofgate-signature')).toEqual([]);
  });
});

describe.each(LANE_ENVOYS)('Envoy %s behind another proxy', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    const manager = shipped.connectionManager;
    const edits = [
      { path: [...manager, 'use_remote_address'], value: false },
      {
        path: [...manager, 'internal_address_config', 'cidr_ranges', 0, 'address_prefix'],
        value: '127.0.0.1',
      },
      { path: [...manager, 'forward_client_cert_details'], value: 'ALWAYS_FORWARD_ONLY' },
      { path: [...manager, 'preserve_external_request_id'], value: true },
    ];
    recorded = await startRecordedEnvoy(version, { edits });
  });
  afterAll(() => recorded.stop());

  it.each(joinedBehindAProxy)('joins repeated %s lines into one', async (name) => {
    const headers = [
      ['x-forwarded-for', '127.0.0.1'],
      [name, '1'],
      [name, '2'],
    ] as const;
    const measured = await recorded.measure(recorded.http1, { ...get, headers });
    expect(checkedValues(measured, name)).toEqual([expect.stringMatching(/(^|,)1,2$/)]);
  });
});

/** Without either of the settings that overwrite a caller's claim about its scheme. */
describe.each(LANE_ENVOYS)('Envoy %s that believes x-forwarded-proto', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    const manager = shipped.connectionManager;
    const edits = [
      { path: [...manager, 'use_remote_address'], value: false },
      { path: [...manager, 'scheme_header_transformation'] },
    ];
    recorded = await startRecordedEnvoy(version, { edits });
  });
  afterAll(() => recorded.stop());

  it.each<[values: readonly string[], arrives: string, scheme: string]>([
    [['https'], 'https', 'https'],
    [['https', ''], 'https', 'https'],
    // Joined, it is no scheme: that of the connection stays.
    [['https', 'https'], 'https,https', 'http'],
    [['https', 'http'], 'https,http', 'http'],
    [['http', 'https'], 'http,https', 'http'],
    [['https, https'], 'https, https', 'http'],
    [['ftp'], 'ftp', 'http'],
  ])('%j arrives as %j, and makes the scheme of HTTP/1.1 %j', async (values, arrives, scheme) => {
    const headers = values.map((value) => ['x-forwarded-proto', value] as const);
    const measured = await recorded.measure(recorded.http1, { ...get, headers });
    expect(checkedValues(measured, 'x-forwarded-proto')).toEqual([arrives]);
    expect(checkedHttp(measured).scheme).toBe(scheme);
    // HTTP/2 has the scheme from its own caller.
    const over2 = await recorded.measure(recorded.http2, { ...get, headers });
    expect(checkedValues(over2, 'x-forwarded-proto')).toEqual([arrives]);
    expect(checkedHttp(over2).scheme).toBe('http');
  });
});

describe.each(LANE_ENVOYS)('Envoy %s without encode_raw_headers', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    recorded = await startRecordedEnvoy(version, {
      edits: [{ path: [...shipped.extAuthz, 'encode_raw_headers'] }],
    });
  });
  afterAll(() => recorded.stop());

  it('sends the headers map instead: lines joined, other bytes replaced', async () => {
    const headers = [
      ['x-a', '1'],
      ['x-a', '2'],
      ['x-b', 'a\xffb'],
    ] as const;
    const seen = checkedHttp(await recorded.measure(recorded.http1, { ...get, headers }));
    expect(seen.headers).toMatchObject({ 'x-a': '1,2', 'x-b': 'a!b' });
    expect(seen.header_map?.headers ?? []).toEqual([]);
  });
});
