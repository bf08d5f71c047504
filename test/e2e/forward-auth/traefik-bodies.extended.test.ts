/** Facts about Traefik: which bodies the verifier sees with forwardBody, and what reaches the API. docs/operate/forward-auth.md. */
import { afterEach, describe, expect, it } from '@jest/globals';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { forwardAuth, traefikUnavailable } from '../../support/harness/traefik.ts';
import { traefik as shipped, traefikWith } from '../../support/proxies/traefik.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { checkedHeader, type Observation, useMeasuredProxy } from './measured-proxy.ts';
import { ALLOW } from './recording-check.ts';

const PROTOCOLS = ['http1', 'http2'] as const;
const suite = traefikUnavailable() === undefined ? describe : describe.skip;
const MAX_BODY_BYTES = 1_048_576;

const request = (more: Partial<WireRequest>): WireRequest => ({
  method: 'POST',
  target: '/a',
  authority: AUTHORITY,
  ...more,
});

const bodies = ({ checks, forwarded }: Observation): readonly string[] =>
  [...checks, ...forwarded].map(({ body }) => body.toString('latin1'));

suite('Traefik with forwardBody', () => {
  const traefik = useMeasuredProxy(shipped);
  afterEach(() => traefik.parts.check.behave(ALLOW));

  it.each<[string, Partial<WireRequest>]>([
    ['of a known length', { body: 'abc', framing: 'length' }],
    ['of an open length', { body: 'abc', framing: 'open' }],
    ['of a GET', { method: 'GET', body: 'abc', framing: 'length' }],
    ['of a GET of an open length', { method: 'GET', body: 'abc', framing: 'open' }],
    ['of a DELETE', { method: 'DELETE', body: 'abc', framing: 'open' }],
    ['that is compressed', { body: 'abc', headers: [['content-encoding', 'gzip']] }],
    ['after Expect: 100-continue', { body: 'abc', framing: 'length', headers: [['expect', '100-continue']] }],
    ['of the maximum size', { body: 'a'.repeat(MAX_BODY_BYTES) }],
    ['before trailers', { body: 'abc', trailers: [['x-t', '1']] }],
  ])('shows verifier and API the same body %s', async (_, more) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, request(more));
      expect(bodies(measured)).toEqual([more.body, more.body]);
    }
  });

  it.each(['GET', 'POST', 'PUT', 'DELETE'])('shows no body of a %s without one', async (method) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, request({ method }));
      expect(bodies(measured)).toEqual(['', '']);
      expect(checkedHeader(measured, 'transfer-encoding')).toEqual([]);
    }
  });

  it('refuses an empty body of an open length with 500', async () => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, request({ framing: 'open' }));
      expect([measured.status, measured.checks, measured.forwarded]).toEqual([500, [], []]);
    }
  });

  it('refuses a larger body with 401, without a reason', async () => {
    for (const framing of ['length', 'open'] as const) {
      const body = 'a'.repeat(MAX_BODY_BYTES + 1);
      const measured = await traefik.observe('http1', request({ body, framing }));
      expect([measured.status, measured.checks, measured.forwarded]).toEqual([401, [], []]);
      expect(measured.answer.body).toBe('');
    }
  });

  it('forwards nothing of a body that ends too early', async () => {
    traefik.parts.check.clear();
    traefik.parts.upstream.clear();
    const head = `POST /a HTTP/1.1\r\nHost: ${AUTHORITY}\r\n`;
    for (const rest of [
      'Content-Length: 5\r\n\r\nabc',
      'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
      'Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n',
    ]) {
      const response = await sendBytes(traefik.parts.proxy, Buffer.from(head + rest), 'POST', 500).catch(
        () => undefined,
      );
      expect([undefined, 400, 500]).toContain(response?.status);
    }
    expect([traefik.parts.check.checks, traefik.parts.upstream.requests]).toEqual([[], []]);
  });

  it('drops trailers of requests', async () => {
    for (const protocol of PROTOCOLS) {
      const trailers = [['x-proofgate-subject', 'e']] as const;
      const measured = await traefik.observe(protocol, request({ body: 'abc', trailers }));
      expect(measured.forwarded.map((one) => one.trailers)).toEqual([[]]);
      expect(checkedHeader(measured, 'x-proofgate-subject')).toEqual([]);
    }
  });

  it('sends no byte of a body to the API when the verifier denies', async () => {
    traefik.parts.check.behave({ status: 403 });
    const measured = await traefik.observe('http1', request({ body: 'a'.repeat(100_000) }));
    expect([measured.status, measured.forwarded]).toEqual([403, []]);
  });
});

suite('Traefik without forwardBody', () => {
  const traefik = useMeasuredProxy(
    traefikWith({ file: 'proofgate.yaml', path: [...forwardAuth, 'forwardBody'], value: false }),
  );

  it('hides bodies from the verifier and forwards them', async () => {
    for (const method of ['POST', 'DELETE', 'GET']) {
      const measured = await traefik.observe('http1', request({ method, body: 'abc' }));
      expect(bodies(measured)).toEqual(['', 'abc']);
      expect(checkedHeader(measured, 'content-length')).toEqual([]);
    }
  });
});
