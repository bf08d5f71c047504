/** Checks of an egress Envoy: what an allowed answer adds and removes, and what is refused. */
import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { RequestSigner } from '../../../../src/caller/sign/request-signer.ts';
import { checkResponseOf } from '../../../../src/caller/signer/ext-authz/signing-check.ts';
import type { HttpRequest } from '../../../../src/process/ext-authz/request-messages.ts';
import type { ProofFormat } from '../../../../src/protocol/proof-format.ts';
import { parseTranscript } from '../../../../src/protocol/transcript.ts';
import { newEd25519Key, profilesOf, routeDocument } from '../../../support/caller/signing.ts';

const PROFILES = profilesOf(
  routeDocument(),
  routeDocument({
    route_id: 'create',
    method: 'POST',
    path_template: '/v1/orders',
    signed_headers: ['x-tenant'],
  }),
  routeDocument({
    route_id: 'own',
    path_template: '/v1/own',
    passport_header: 'X-Proofgate-Passport',
    signed_headers: ['authorization'],
  }),
  routeDocument({ route_id: 'plain', path_template: '/v1/plain', origins: ['http://plain.shop.example'] }),
  routeDocument({
    route_id: 'both',
    path_template: '/v1/both',
    origins: ['http://api.shop.example', 'https://api.shop.example'],
  }),
);

function signerWith(ready = true, proof: ProofFormat = 'transcript-v1') {
  const signer = new RequestSigner({ proof });
  if (ready) signer.replaceIdentity({ key: newEd25519Key(), files: [PROFILES], passports: undefined });
  return signer;
}

const RESENDING = ['x-envoy-retry-on', 'x-envoy-retry-grpc-on', 'x-envoy-hedge-on-per-try-timeout'];

type Lines = readonly (readonly [string, string])[];

function httpOf({
  lines = [],
  ...members
}: Omit<HttpRequest, 'header_map'> & { readonly lines?: Lines } = {}): HttpRequest {
  const headers = lines.map(([key, value]) => ({ key, raw_value: Buffer.from(value) }));
  return {
    ...{ method: 'GET', scheme: 'http', host: 'api.shop.example', path: '/v1/orders/7?x=1' },
    header_map: { headers },
    ...members,
  };
}

function check(
  http: HttpRequest,
  { ready = true, unsigned = 'deny' as 'deny' | 'pass', proof = 'transcript-v1' as ProofFormat } = {},
) {
  const refusals: string[] = [];
  const response = checkResponseOf(
    { attributes: { request: { http } } },
    {
      signer: signerWith(ready, proof),
      unsigned,
      onSigned: () => undefined,
      onRefused: (code) => void refusals.push(code),
      onPassed: () => undefined,
    },
  );
  const added = Object.fromEntries(
    (response.ok_response?.headers ?? []).map(({ header: { key, value } }) => [key, value]),
  );
  const transcript = parseTranscript(
    Buffer.from(added['x-proofgate-transcript'] ?? '', 'base64url'),
    'authorization',
  );
  return {
    response,
    added,
    transcript,
    refusal: refusals[0],
    removed: response.ok_response?.headers_to_remove,
  };
}

it('refuses headers that gateways refuse once passport and proof are beside them', () => {
  const tokenOf = (bytes: number): Lines => [['x-own', 'x'.repeat(bytes)]];
  expect(check(httpOf({ lines: tokenOf(50_000) })).refusal).toBeUndefined();
  expect(check(httpOf({ lines: tokenOf(60_500) })).refusal).toBe('credentials_too_large');
  const other = (count: number) => Array.from({ length: count }, (_, at) => [`x-own-${at}`, ''] as const);
  // With Host, passport and the two headers of the proof: 100.
  const pseudo: Lines = [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':authority', 'api.shop.example'],
    [':path', '/v1/orders/7?x=1'],
  ];
  expect(check(httpOf({ lines: [...pseudo, ...other(96)] })).refusal).toBeUndefined();
  expect(check(httpOf({ lines: [...pseudo, ...other(97)] })).refusal).toBe('credentials_too_large');
  // The application's own credentials do not go on.
  const own: Lines = [
    ['x-proofgate-signature', 'x'],
    ['authorization', `Passport ${'x'.repeat(60_000)}`],
  ];
  expect(check(httpOf({ lines: own })).refusal).toBeUndefined();
});

describe('an allowed check', () => {
  it("adds passport and proof for the upstream's origin", () => {
    const { added, response, transcript } = check(httpOf());
    expect(response.status).toEqual({ code: 0 });
    expect(Object.keys(added).sort()).toEqual([
      'authorization',
      'x-proofgate-signature',
      'x-proofgate-transcript',
    ]);
    expect(transcript).toMatchObject({
      ...{ scheme: 'https', authority: 'api.shop.example', target: '/v1/orders/7?x=1', contentSha256: '-' },
    });
  });

  it('signs for a plain origin only where the profile has no other', () => {
    const { transcript } = check(httpOf({ host: 'plain.shop.example', path: '/v1/plain' }));
    expect(transcript).toMatchObject({ scheme: 'http', authority: 'plain.shop.example' });
  });

  it('does not sign for the plain origin when a host with port 80 has both', () => {
    const both = { path: '/v1/both' };
    expect(check(httpOf(both)).transcript?.scheme).toBe('https');
    expect(check(httpOf({ ...both, host: 'api.shop.example:80' })).refusal).toBe('origin_not_allowed');
    const plain = { path: '/v1/plain', host: 'plain.shop.example:80' };
    expect(check(httpOf(plain)).transcript).toMatchObject({
      scheme: 'http',
      authority: 'plain.shop.example',
    });
  });

  it('binds body and headers', () => {
    const body = Buffer.from('{"item":1}');
    const lines: Lines = [
      ['x-tenant', ' a '],
      ['content-length', '10'],
      ['x-envoy-auth-partial-body', 'false'],
    ];
    const { transcript } = check(httpOf({ method: 'POST', path: '/v1/orders', raw_body: body, lines }));
    expect(transcript).toMatchObject({
      contentSha256: hash('sha256', body, 'base64url'),
      headers: [{ name: 'x-tenant', value: 'a' }],
    });
  });

  it('may add an HTTP message signature, in place of that of an earlier attempt', () => {
    const body = Buffer.from('{"item":1}');
    const usual: Lines = [
      ['x-tenant', 'a'],
      ['content-type', 'application/json'],
      ['content-length', '10'],
      ['x-envoy-auth-partial-body', 'false'],
    ];
    const sign = (lines: Lines) =>
      check(
        httpOf({
          method: 'POST',
          path: '/v1/orders',
          raw_body: body,
          lines: [...usual, ...lines],
        }),
        {
          proof: 'http-message-signatures',
        },
      );
    const first = sign([]);
    expect(first.added).toMatchObject({
      'content-digest': `sha-256=:${hash('sha256', body, 'base64')}:`,
      'signature-input': expect.stringMatching(
        /^sig=\("@method" "@target-uri" "content-digest" "content-type" "x-tenant"\);created=/,
      ),
    });
    const again = sign(Object.entries(first.added));
    expect(Object.keys(again.added).sort()).toEqual(['content-digest', 'signature', 'signature-input']);
    expect([again.removed, again.added.signature === first.added.signature]).toEqual([RESENDING, false]);
    expect(sign([['signature', 'keyId="app"']]).refusal).toBe('header_reserved');
  });

  it('may add a DPoP proof, which covers no body, in place of that of an earlier attempt', () => {
    const sign = (lines: Lines) =>
      check(httpOf({ method: 'POST', path: '/v1/orders', lines: [['x-tenant', 'a'], ...lines] }), {
        proof: 'dpop',
      });
    const first = sign([]);
    expect(first.added).toEqual({
      authorization: expect.stringMatching(/^DPoP ey/),
      dpop: expect.stringMatching(/^ey/),
    });
    const again = sign(Object.entries(first.added));
    expect([again.removed, Object.keys(again.added)]).toEqual([RESENDING, ['authorization', 'dpop']]);
    expect(again.added.dpop).not.toBe(first.added.dpop);
    expect(sign([['dpop', 'ey.ey.AA']]).refusal).toBe('header_reserved');
    expect(sign([['authorization', 'DPoP ey.ey.AA']]).refusal).toBe('header_reserved');
  });

  it("signs the application's own Authorization, and leaves it", () => {
    const { added, removed } = check(httpOf({ path: '/v1/own', lines: [['authorization', 'Bearer x']] }));
    const bytes = Buffer.from(added['x-proofgate-transcript'] ?? '', 'base64url');
    expect(parseTranscript(bytes, 'x-proofgate-passport')?.headers).toEqual([
      { name: 'authorization', value: 'Bearer x' },
    ]);
    expect([removed, added.authorization]).toEqual([RESENDING, undefined]);
  });

  it("removes the application's own credentials", () => {
    const lines: Lines = [
      ['x_proofgate_subject', 'x'],
      ['x-proofgate-key-id', 'x'],
      ['x-proofgate-signature', 'x'],
      ['authorization', 'Passport old'],
    ];
    const { added, removed } = check(httpOf({ lines }));
    expect(removed).toEqual([...RESENDING, 'x_proofgate_subject', 'x-proofgate-key-id']);
    expect(added.authorization).toMatch(/^Passport ey/);
  });

  it('removes headers with which Envoy would send the proof again, also those that the Check does not show', () => {
    const lines: Lines = [
      ['x-envoy-retry-on', '5xx'],
      ['x-envoy-upstream-rq-timeout-ms', '100'],
    ];
    expect(check(httpOf({ lines })).removed).toEqual(RESENDING);
  });
});

type RefusedCase = [name: string, http: HttpRequest, code: string, status: number];

describe('a refused check', () => {
  const lines = (...given: Lines) => httpOf({ lines: given });
  const otherThanPassport = (path: string, ...given: Lines): RefusedCase => [
    `of ${path} with ${given.map(([, value]) => value).join(' and ')}`,
    httpOf({ path, lines: given }),
    'header_reserved',
    400,
  ];
  it.each<RefusedCase>([
    ['without a profile', httpOf({ path: '/v2' }), 'profile_not_found', 502],
    ['of another origin', httpOf({ host: 'evil.example' }), 'origin_not_allowed', 502],
    ['with a user name', httpOf({ host: 'api.shop.example@evil.example' }), 'url_invalid', 400],
    [
      'with a path in the host',
      httpOf({ host: 'api.shop.example/v1/orders/7?', path: '/x' }),
      'target_not_canonical',
      400,
    ],
    ['without a path', httpOf({ path: '' }), 'profile_not_found', 502],
    ['in another form', httpOf({ path: '/v1/orders/../orders/7' }), 'url_not_canonical', 400],
    ['of an absolute form', httpOf({ path: 'https://api.shop.example/v1/orders/7' }), 'url_invalid', 400],
    ['of CONNECT', httpOf({ method: 'CONNECT', path: '' }), 'profile_not_found', 502],
    ['of a web page', lines(['origin', 'https://evil.example']), 'browser_request', 403],
    ['with a sec-fetch-site', lines(['sec-fetch-site', 'cross-site']), 'browser_request', 403],
    ['with an Authorization of its own', lines(['authorization', 'Bearer x']), 'header_reserved', 400],
    [
      'with two of them',
      lines(['authorization', 'Bearer x'], ['authorization', 'Bearer x']),
      'header_reserved',
      400,
    ],
    ...['/v1/orders/7', '/v1/own'].flatMap((path) => [
      otherThanPassport(path, ['authorization', 'Bearer x'], ['authorization', 'Passport y']),
      otherThanPassport(path, ['authorization', 'Passport y, Bearer x']),
    ]),
    [
      'with a passport in place of a token to sign',
      httpOf({ path: '/v1/own', lines: [['authorization', 'Passport x']] }),
      'header_missing',
      400,
    ],
    [
      'with two tokens to sign',
      httpOf({
        path: '/v1/own',
        lines: [
          ['authorization', 'Bearer x'],
          ['authorization', 'Bearer x'],
        ],
      }),
      'header_repeated',
      400,
    ],
    ['of an unknown body', httpOf({ lines: [['content-length', '5']] }), 'body_unavailable', 400],
    ['of a partial body', lines(['x-envoy-auth-partial-body', 'true']), 'body_unavailable', 400],
    ['without a header to sign', httpOf({ method: 'POST', path: '/v1/orders' }), 'header_missing', 400],
    [
      'with two of them',
      httpOf({
        method: 'POST',
        path: '/v1/orders',
        lines: [
          ['x-tenant', 'a'],
          ['x-tenant', 'b'],
        ],
      }),
      'header_repeated',
      400,
    ],
    ['that is empty', {}, 'method_invalid', 400],
  ])('%s', (_case, http, code, status) => {
    const { added, refusal, response } = check(http);
    expect([refusal, response.denied_response?.status.code]).toEqual([code, status]);
    expect(response.denied_response?.body).toContain(`urn:proofgate:fault:${code}`);
    expect(response.status?.code).not.toBe(0);
    expect(added).toEqual({});
  });
});

describe('--unsigned pass', () => {
  it('lets a request without a profile through, without credentials', () => {
    const http = httpOf({
      path: '/v2',
      lines: [
        ['authorization', 'Bearer x'],
        ['x-proofgate-subject', 'x'],
      ],
    });
    const { added, removed, response } = check(http, { unsigned: 'pass' });
    expect([response.status?.code, added, removed]).toEqual([0, {}, ['x-proofgate-subject']]);
  });

  it.each([['Passport stolen'], ['Bearer b, Passport stolen'], ['Passport\tstolen']])(
    'removes the passport of another signer: %j',
    (authorization) => {
      const http = httpOf({ path: '/v2', lines: [['authorization', authorization]] });
      expect(check(http, { unsigned: 'pass' }).removed).toEqual(['authorization']);
    },
  );

  it.each([
    ['another origin', httpOf({ host: 'evil.example' }), true, 'origin_not_allowed'],
    ['a missing key', httpOf({ path: '/v2' }), false, 'identity_not_ready'],
    ['a web page', httpOf({ path: '/v2', lines: [['origin', 'null']] }), true, 'browser_request'],
    ['a target with a fragment', httpOf({ fragment: 'x' }), true, 'target_not_canonical'],
    [
      'an unclear length',
      httpOf({ method: 'POST', path: '/v2', lines: [['content-length', '+5']] }),
      true,
      'target_not_canonical',
    ],
  ])('does not for %s', (_case, http, ready, code) => {
    expect(check(http, { ready, unsigned: 'pass' }).refusal).toBe(code);
  });
});
