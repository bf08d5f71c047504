/** Tests bodies: exactly the signed bytes arrive, for every size, content and framing. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { Framing, WireRequest } from '../../src/tools/conformance/wire/exchange.ts';
import { shipped } from '../support/harness/envoy-config.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { type GatewayVariant, useEnvironment } from '../support/site/environment.ts';
import { PROTOCOLS } from '../support/site/gateway.ts';
import { expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { type RequestPlan, signedRequest } from '../support/site/signed-request.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const maxRequestBytes = 1_048_576;
const { createOrder, createUnseen, readOrder, readUnseen, replaceOrder, upload } = ROUTES;

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const notUtf8 = Buffer.of(0x7b, 0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0x00, 0x7d);
const largest = Buffer.alloc(maxRequestBytes, everyByte);
const json = Buffer.from('{"item":1,"count":2}');

const environment = useEnvironment(['usual', 'bodies_unseen']);
const signed = (plan: Omit<RequestPlan, 'caller'>) =>
  signedRequest(environment.site, { caller: derivedKeyCaller(environment.site), ...plan });

const AS_TEXT: GatewayVariant = {
  name: 'bodies as text',
  edits: [{ path: [...shipped.extAuthz, 'with_request_body', 'pack_as_bytes'], value: false }],
};
const UNBUFFERED: GatewayVariant = {
  name: 'no bodies in checks',
  edits: [{ path: [...shipped.extAuthz, 'with_request_body'] }],
};

const combinations = LANE_ENVOYS.flatMap((version) => PROTOCOLS.map((protocol) => ({ version, protocol })));

describe.each(combinations)('Envoy $version, $protocol', ({ version, protocol }) => {
  async function expectRequestAllowed(request: WireRequest, route: SiteRoute, variant?: GatewayVariant) {
    const gateway = await environment.gateway(version, 'usual', variant);
    const observed = await observe(gateway, gateway.client(protocol), request);
    const expected = { routeId: route.route_id, subject: 'client:billing' };
    const arrived = await expectAllowed(gateway, observed, expected);
    expect(arrived.body.equals(Buffer.from(request.body ?? ''))).toBe(true);
  }

  async function expectRequestDenied(
    request: WireRequest,
    route: SiteRoute,
    detail: string,
    variant?: GatewayVariant,
  ) {
    const gateway = await environment.gateway(version, 'usual', variant);
    const observed = await observe(gateway, gateway.client(protocol), request);
    const reason = 'request_binding_mismatch';
    await expectDenial(gateway, observed, { reason, detail, routeId: route.route_id });
  }

  it.each<[string, SiteRoute, Uint8Array | undefined, Framing | undefined]>([
    ['no body in a GET', readOrder, undefined, undefined],
    ['an empty body of no announced length in a GET', readOrder, undefined, 'open'],
    ['length 0 in a GET', readOrder, undefined, 'length'],
    ['no body in a POST', createOrder, undefined, undefined],
    ['length 0 in a POST', createOrder, undefined, 'length'],
    ['an empty body of no announced length in a POST', createOrder, undefined, 'open'],
    ['a small body', createOrder, json, 'length'],
    ['a small body of no announced length', replaceOrder, json, 'open'],
    ['a body in a GET', readOrder, json, 'length'],
    ['one NUL', createOrder, Buffer.of(0), 'length'],
    ['every byte', createOrder, everyByte, 'length'],
    ['bytes that are not UTF-8, of no announced length', createOrder, notUtf8, 'open'],
    ['as much as fits', createOrder, largest, 'length'],
    ['as much as fits, of no announced length', replaceOrder, largest, 'open'],
  ])('lets through %s', async (_what, route, body, framing) => {
    const plan = { route, ...(body && { body }), ...(framing && { framing }) };
    await expectRequestAllowed(signed(plan), route);
  });

  it.each<[string, Buffer, Buffer]>([
    ['one bit of the largest', largest, changedAt(largest, maxRequestBytes - 1)],
    ['the first byte', everyByte, changedAt(everyByte, 0)],
    ['a byte appended', everyByte, Buffer.concat([everyByte, Buffer.of(0)])],
    ['a byte taken away', everyByte, everyByte.subarray(0, 255)],
    ['other bytes that are not UTF-8', notUtf8, changedAt(notUtf8, 1)],
    ['CR LF for LF', Buffer.from('a\nb'), Buffer.from('a\r\nb')],
  ])('refuses a change: %s', async (_what, body, sent) => {
    for (const framing of ['length', 'open'] as const) {
      const request = { ...signed({ route: createOrder, body, framing }), body: sent };
      await expectRequestDenied(request, createOrder, 'content-sha256');
    }
  });

  it('refuses more than fits, however it is signed', async () => {
    const gateway = await environment.gateway(version);
    const body = Buffer.alloc(maxRequestBytes + 65_536, 7);
    for (const framing of ['length', 'open'] as const) {
      const { response, forwarded } = await observe(
        gateway,
        gateway.client(protocol),
        signed({ route: createOrder, body, framing }),
      );
      expect([response.status, forwarded.length]).toEqual([413, 0]);
    }
  });

  it('refuses one byte more than fits, with the hash of the whole or of the part that is checked', async () => {
    const body = Buffer.alloc(maxRequestBytes + 1, 7);
    const contentSha256 = createHash('sha256').update(body.subarray(0, maxRequestBytes)).digest('base64url');
    const whole = signed({ route: createOrder, body });
    const part = signed({ route: createOrder, body, transcript: { contentSha256 } });
    const gateway = await environment.gateway(version);
    for (const request of [whole, part]) {
      if (protocol === 'HTTP/2') await expectRequestDenied(request, createOrder, 'body_unavailable');
      else expect((await gateway.client(protocol).send(request)).status).toBe(413);
    }
    expect(gateway.upstream.requests).toEqual([]);
  });

  describe('as text, not bytes', () => {
    it('still lets through what is UTF-8', () =>
      expectRequestAllowed(signed({ route: createOrder, body: json }), createOrder, AS_TEXT));

    it('takes nothing else for what is signed', async () => {
      const body = Buffer.from([0x61, 0xff, 0x62]);
      await expectRequestDenied(
        signed({ route: createOrder, body }),
        createOrder,
        'body_unavailable',
        AS_TEXT,
      );
      for (const stand of ['a!b', 'a\ufffdb', 'a?b', 'ab']) {
        const request = { ...signed({ route: createOrder, body: stand }), body };
        const gateway = await environment.gateway(version, 'usual', AS_TEXT);
        const { response, forwarded } = await observe(gateway, gateway.client(protocol), request);
        expect([stand, response.status, forwarded.length]).toEqual([stand, 403, 0]);
      }
    });
  });

  describe('unbound', () => {
    it('streams through more than Envoy would hold', () =>
      expectRequestAllowed(signed({ route: upload, body: Buffer.alloc(3_000_000, everyByte) }), upload));

    it('requires that the caller has not signed a body', async () => {
      const contentSha256 = createHash('sha256').update(json).digest('base64url');
      const request = signed({ route: upload, body: json, transcript: { contentSha256 } });
      await expectRequestDenied(request, upload, 'content-sha256');
    });
  });

  /** Against the documentation; `proofgate envoy lint` is what finds it. */
  describe('bound, where Envoy shows no body', () => {
    it('refuses every body that is announced', async () => {
      const added = { body: json, framing: 'length' } as const;
      await expectRequestDenied(
        { ...signed({ route: readUnseen }), ...added },
        readUnseen,
        'body_unavailable',
      );
      await expectRequestDenied(
        { ...signed({ route: createUnseen }), ...added },
        createUnseen,
        'body_unavailable',
      );
      await expectRequestDenied(signed({ route: createUnseen, ...added }), createUnseen, 'body_unavailable');
    });

    it('cannot see one of no announced length: a body signed is refused, one added to none is not noticed', async () => {
      const added = { body: json, framing: 'open' } as const;
      await expectRequestDenied(signed({ route: createUnseen, ...added }), createUnseen, 'content-sha256');
      await expectRequestAllowed({ ...signed({ route: readUnseen }), ...added }, readUnseen);
      await expectRequestAllowed({ ...signed({ route: createUnseen }), ...added }, createUnseen);
    });

    it('refuses bound routes altogether once the verifier is configured so', async () => {
      const gateway = await environment.gateway(version, 'bodies_unseen', UNBUFFERED);
      for (const [route, plan] of [
        [readOrder, {}],
        [createOrder, { body: json, framing: 'open' }],
        [createOrder, { body: json, framing: 'length' }],
      ] as const) {
        const observed = await observe(gateway, gateway.client(protocol), signed({ route, ...plan }));
        await expectDenial(gateway, observed, {
          reason: 'request_binding_mismatch',
          detail: 'body_unavailable',
          routeId: route.route_id,
        });
      }
      const streamed = await observe(
        gateway,
        gateway.client(protocol),
        signed({ route: upload, body: largest }),
      );
      await expectAllowed(gateway, streamed, { routeId: upload.route_id, subject: 'client:billing' });
    });
  });
});

function changedAt(bytes: Buffer, offset: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(offset) ^ 1, offset);
  return copy;
}
