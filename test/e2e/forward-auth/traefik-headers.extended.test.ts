/** Facts about Traefik: which headers the verifier sees, and which ones the API gets. docs/operate/forward-auth.md. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { forwardAuth, traefikUnavailable, withoutEntryPointSetting } from '../../support/harness/traefik.ts';
import { traefik as shipped, traefikWith } from '../../support/proxies/traefik.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { checkedHeader, forwardedHeader, type Observation, useMeasuredProxy } from './measured-proxy.ts';
import { BARE_ALLOW } from './recording-check.ts';

const PROTOCOLS = ['http1', 'http2'] as const;
const suite = traefikUnavailable() === undefined ? describe : describe.skip;

const withHeaders = (...headers: readonly HeaderLine[]): WireRequest => ({
  method: 'GET',
  target: '/a',
  authority: AUTHORITY,
  headers,
});

/** The values of one header as the verifier sees them and as the API does. */
function seen(observed: Observation, name: string): object {
  return { verifier: checkedHeader(observed, name), api: forwardedHeader(observed, name) };
}

/** Method and target as the verifier reads them. */
const lineOf = (observed: Observation) =>
  ['x-forwarded-method', 'x-forwarded-uri'].flatMap((name) => checkedHeader(observed, name));

const both = (...values: readonly string[]) => ({ verifier: values, api: values });

suite('Traefik and ordinary headers', () => {
  const traefik = useMeasuredProxy(shipped);

  it.each<[string, readonly HeaderLine[], readonly string[]]>([
    ['one line', [['x-a', '1']], ['1']],
    [
      'repeated lines, apart',
      [
        ['x-a', '1'],
        ['x-a', '2'],
      ],
      ['1', '2'],
    ],
    ['an empty value', [['x-a', '']], ['']],
    ['spaces around a value', [['x-a', ' a b ']], ['a b']],
    ['bytes that are not ASCII', [['x-a', '\u00e9\u00ff']], ['\u00e9\u00ff']],
  ])('passes %s to verifier and API alike', async (_, headers, values) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, withHeaders(...headers));
      expect(seen(measured, 'x-a')).toEqual(both(...values));
    }
  });

  it('keeps repeated cookies, accepts and authorizations apart', async () => {
    for (const name of ['cookie', 'accept', 'content-type']) {
      const measured = await traefik.observe('http1', withHeaders([name, 'a=1'], [name, 'b=2']));
      expect(seen(measured, name)).toEqual(both('a=1', 'b=2'));
    }
    const twice = withHeaders(['authorization', 'a'], ['authorization', 'b']);
    expect(checkedHeader(await traefik.observe('http1', twice), 'authorization')).toEqual(['a', 'b']);
  });

  it.each([
    'x_proofgate_subject',
    'x.proofgate.subject',
    'X-Proofgate_Subject',
    'x+proofgate',
    'x_forwarded_uri',
    'x.forwarded.method',
    'x_b',
  ])('refuses the name %s by itself', async (name) => {
    for (const protocol of PROTOCOLS) {
      const sent = protocol === 'http1' ? name : name.toLowerCase();
      const measured = await traefik.observe(protocol, withHeaders([sent, 'e']));
      expect([measured.status, measured.checks, measured.forwarded]).toEqual([400, [], []]);
    }
  });

  it('adds Accept-Encoding for the verifier when there is none, and no User-Agent', async () => {
    const bare = await traefik.observe('http1', withHeaders());
    expect(seen(bare, 'accept-encoding')).toEqual(both('gzip'));
    expect(seen(bare, 'user-agent')).toEqual(both());
    const own = await traefik.observe('http1', withHeaders(['accept-encoding', 'br'], ['user-agent', 'me']));
    expect(seen(own, 'accept-encoding')).toEqual(both('br'));
    expect(seen(own, 'user-agent')).toEqual(both('me'));
  });
});

suite('Traefik and headers about the connection', () => {
  const traefik = useMeasuredProxy(shipped);

  it('drops what Connection names, for verifier and API alike', async () => {
    const named: readonly HeaderLine[] = [
      ['x-a', '1'],
      ['authorization', 'Passport p'],
    ];
    const request = withHeaders(['connection', 'x-a, authorization'], ...named);
    const measured = await traefik.observe('http1', request);
    for (const [name] of named) expect(seen(measured, name)).toEqual(both());
  });

  it('does not drop what it writes itself, although Connection names it', async () => {
    const request = withHeaders(['connection', 'x-forwarded-uri, x-forwarded-method, x-forwarded-host']);
    const measured = await traefik.observe('http1', request);
    const told = ['method', 'uri', 'host'].flatMap((name) => checkedHeader(measured, `x-forwarded-${name}`));
    expect(told).toEqual(['GET', '/a', AUTHORITY]);
  });

  it('shows the verifier no Upgrade, so deploy/traefik/ removes it before the API', async () => {
    for (const token of ['websocket', 'foo', 'h2c']) {
      const request = withHeaders(['connection', 'Upgrade'], ['upgrade', token], ['sec-websocket-key', 'a']);
      const measured = await traefik.observe('http1', request);
      expect(seen(measured, 'upgrade')).toEqual(both());
      expect(seen(measured, 'sec-websocket-key')).toEqual(both('a'));
      expect(checkedHeader(measured, 'x-forwarded-proto')).toEqual(['http']);
    }
  });

  it('refuses connection headers over HTTP/2', async () => {
    for (const [name, value] of [
      ['connection', 'upgrade'],
      ['upgrade', 'websocket'],
      ['keep-alive', '1'],
      ['transfer-encoding', 'chunked'],
    ] as const) {
      const { checks, status } = await traefik.observe('http2', withHeaders([name, value]));
      expect([status === 400 || status === 0, checks]).toEqual([true, []]);
    }
  });

  it('shows the verifier two headers that the API does not get', async () => {
    const request = withHeaders(['proxy-authorization', 'p'], ['proxy-connection', 'x'], ['te', 'trailers']);
    const measured = await traefik.observe('http1', request);
    expect(seen(measured, 'proxy-authorization')).toEqual({ verifier: ['p'], api: [] });
    expect(seen(measured, 'proxy-connection')).toEqual({ verifier: ['x'], api: [] });
    expect(seen(measured, 'te')).toEqual({ verifier: [], api: ['trailers'] });
  });
});

suite('Traefik and what it writes itself', () => {
  const traefik = useMeasuredProxy(shipped);
  beforeEach(() => traefik.parts.check.behave(BARE_ALLOW));

  it('replaces every X-Forwarded header that it knows', async () => {
    const known = ['method', 'uri', 'host', 'proto', 'for', 'port', 'prefix', 'server', 'tls-client-cert'];
    const headers = [...known.map((name) => `x-forwarded-${name}`), 'x-real-ip'].map(
      (name): HeaderLine => [name, 'evil'],
    );
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, withHeaders(...headers));
      expect(JSON.stringify([measured.checks[0]?.rawHeaders, measured.forwarded[0]?.headers])).not.toContain(
        'evil',
      );
      const told = ['method', 'uri', 'host', 'proto', 'for'].map((name) =>
        checkedHeader(measured, `x-forwarded-${name}`),
      );
      expect(told).toEqual([['GET'], ['/a'], [AUTHORITY], ['http'], ['127.0.0.1']]);
    }
  });

  it('passes Forwarded and unknown X-Forwarded headers on, to the verifier too', async () => {
    const measured = await traefik.observe(
      'http1',
      withHeaders(['forwarded', 'e'], ['x-forwarded-foo', 'e']),
    );
    expect(seen(measured, 'forwarded')).toEqual(both('e'));
    expect(seen(measured, 'x-forwarded-foo')).toEqual(both('e'));
  });

  it("removes the caller's passport, proof and X-Proofgate headers, whatever the verifier answers", async () => {
    const names = [
      'x-proofgate-subject',
      'x-proofgate-other',
      'x-proofgate-transcript',
      'x-proofgate-signature',
    ];
    const headers = [...names, 'authorization'].map((name): HeaderLine => [name, 'mine']);
    const measured = await traefik.observe('http1', withHeaders(...headers));
    for (const name of [...names, 'authorization']) {
      expect(seen(measured, name)).toEqual({ verifier: ['mine'], api: [] });
    }
  });

  it("sets the verifier's context headers and its Authorization in their place, and no other header of its answer", async () => {
    const answer: readonly HeaderLine[] = [
      ['x-proofgate-subject', 'client:a'],
      ['authorization', 'Passport p'],
      ['x-other', '1'],
      ['set-cookie', 'a=1'],
    ];
    traefik.parts.check.behave({ status: 200, headers: answer });
    const request = withHeaders(
      ['x-proofgate-subject', 'mine'],
      ['authorization', 'mine'],
      ['x-other', 'mine'],
    );
    const measured = await traefik.observe('http1', request);
    expect(
      ['x-proofgate-subject', 'authorization', 'x-other', 'set-cookie'].map(
        (name) => forwardedHeader(measured, name)[0],
      ),
    ).toEqual(['client:a', 'Passport p', 'mine', undefined]);
    expect(measured.answer.header('set-cookie')).toEqual([]);
  });
});

suite('Traefik without a setting that deploy/traefik/ has', () => {
  const trusting = useMeasuredProxy(
    traefikWith({ file: 'proofgate.yaml', path: [...forwardAuth, 'trustForwardHeader'], value: true }),
  );
  const aliasing = useMeasuredProxy(traefikWith(withoutEntryPointSetting('aliasHeadersStrategy')));
  const insecure = useMeasuredProxy(
    traefikWith(
      { file: 'proofgate.yaml', path: [...forwardAuth, 'trustForwardHeader'], value: true },
      {
        file: 'traefik.yaml',
        path: ['entryPoints', 'web', 'forwardedHeaders', 'insecure'],
        value: true,
      },
    ),
  );

  it('with trustForwardHeader alone still tells its own method and target', async () => {
    const request = withHeaders(['x-forwarded-uri', '/evil'], ['x-forwarded-method', 'DELETE']);
    expect(lineOf(await trusting.observe('http1', request))).toEqual(['GET', '/a']);
  });

  it("with trustForwardHeader and forwardedHeaders.insecure tells the caller's method and target", async () => {
    const request = withHeaders(['x-forwarded-uri', '/evil'], ['x-forwarded-method', 'DELETE']);
    const measured = await insecure.observe('http1', request);
    expect(lineOf(measured)).toEqual(['DELETE', '/evil']);
    expect(measured.forwarded.map(({ url }) => url)).toEqual(['/a']);
  });

  it('without aliasHeadersStrategy passes other spellings of our names on (GHSA-rf44-j88r-hh8c)', async () => {
    for (const name of ['x_proofgate_subject', 'x.tenant', 'x_forwarded_foo']) {
      const measured = await aliasing.observe('http1', withHeaders([name, 'e']));
      const isOurs = name.includes('proofgate');
      expect(seen(measured, name)).toEqual({ verifier: ['e'], api: isOurs ? [] : ['e'] });
    }
  });
});
