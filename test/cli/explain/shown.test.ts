/**
 * Tests which parts of a request `proofgate explain` prints, and how it locates the difference of two texts without printing
 * either.
 */
import { mkdtemp } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asContent } from '../../../src/bundle/format/shape.ts';
import { putBundle } from '../../support/bundle/bundle-directory.ts';
import { edited } from '../../support/fixtures/bundle-content.ts';
import {
  type RequestPlan,
  type WireRequest,
  withHeader,
  withoutHeader,
} from '../../support/fixtures/signed-request.ts';
import { siteContent, sourcesOf } from '../../support/fixtures/snapshot.ts';
import { bundleKey, captureOf, ExplainStage, keys, withLines } from './explain-fixture.ts';

const read = { caller: 'billing', route: 'orders-read' } as const;
const tenants = { caller: 'broker', route: 'tenants' } as const;

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

async function differingLines(
  plan: RequestPlan,
  received: (wire: WireRequest) => WireRequest,
  ...args: readonly string[]
) {
  const { report } = await stage.report(captureOf(stage.sign(plan, { received })), ...args);
  return report.transcript.filter(({ equal }) => !equal);
}

const withTarget = (target: string) => (wire: WireRequest) => ({ ...wire, target });

it('names both routes where a literal takes precedence over a placeholder', async () => {
  const site = siteContent(keys);
  const search = { route_id: 'search', method: 'POST', path_template: '/v1/orders/search' };
  const folder = await mkdtemp(stage.path('shadowed-'));
  const content = edited(
    site,
    { at: '/routes/-', put: { ...site.routes[0], ...search } },
    { at: '/route_sources/-', put: { ...site.route_sources[0], route_id: 'search' } },
  );
  await putBundle(folder, asContent('bundle', content, 'bundle.yaml'), bundleKey);
  const hintOf = async (target: string) => {
    const capture = captureOf(stage.sign(read, { received: withTarget(target) }));
    const { report } = await stage.report(
      capture,
      ...['--bundle', folder, '--bundle-key', stage.path('key.jwk.json')],
    );
    expect(report.decision).toMatchObject({ reason: 'bundle_route_missing', detail: 'no_match' });
    return report.hint;
  };
  expect(await hintOf('/v1/orders/search')).toMatch(
    /orders-read \(GET \/v1\/orders\/\{order_id\}\), .* search \(POST \/v1\/orders\/search\)/,
  );
  expect(await hintOf('/v1/nowhere')).not.toContain('search');
});

describe('where two lines differ', () => {
  it.each([
    ['/v1/orders/18?fields=id&fields=total', 13, 'path segment 3', null],
    ['/v1/orders/17?fields=id&fields=Total', 32, 'query parameter 2', 'case'],
    ['/v1/orders/17?fields=%69d&fields=total', 22, 'query parameter 1', 'escapes'],
    ['/v1/orders/17?fields=id&fields=t%6ftal', 33, 'query parameter 2', 'escapes'],
    ['/v1/orders/17', 14, 'path segment 3', null],
    ['/v1/orders/17?fields=id&fields=total&x', 37, 'query parameter 2', null],
  ])('of the target: %s', async (target, character, place, only_in) => {
    expect(await differingLines(read, withTarget(target))).toEqual([
      expect.objectContaining({ line: 'target', difference: { character, place, only_in } }),
    ]);
  });

  it('in escapes alone, what to do is another thing', async () => {
    const hintOf = async (target: string) => {
      const { report } = await stage.report(captureOf(stage.sign(read, { received: withTarget(target) })));
      return report.hint;
    };
    expect(await hintOf('/v1/orders/17?fields=%69d&fields=total')).toContain('docs/operate/cdn.md');
    expect(await hintOf('/v1/orders/17?fields=ID&fields=total')).not.toContain('docs/operate/cdn.md');
  });

  it('of a header, and nothing where one side has none', async () => {
    const change = (wire: WireRequest) =>
      withoutHeader(
        withHeader(wire, 'x-tenant', () => 'acmes'),
        'accept',
      );
    expect(await differingLines(tenants, change)).toEqual([
      expect.objectContaining({ line: 'header.accept', why: 'header_missing', difference: null }),
      {
        line: 'header.x-tenant',
        equal: false,
        signed: '[4 characters]',
        rebuilt: '[5 characters]',
        why: null,
        difference: { character: 5, place: null, only_in: null },
      },
    ]);
  });

  it('in words', async () => {
    const signed = stage.sign(read, { received: withTarget('/v1/orders/17?fields=id&fields=Total') });
    const { stdout } = await stage.explain(captureOf(signed));
    expect(stdout).toContain(
      'they differ from character 32 on, in query parameter 2, in upper and lower case alone\n',
    );
  });
});

describe('what is shown', () => {
  it.each([['--bundle-key'], ['--unverified-bundle']])('of a rule that matches nothing (%s)', async (how) => {
    const content = siteContent(keys);
    for (const source of sourcesOf(content, 'orders-read')) {
      source.subject_prefix &&= source.subject_prefix.replace('/ns/prod/', '/ns/prod/../');
    }
    const folder = await mkdtemp(stage.path('odd-'));
    await putBundle(folder, content, bundleKey);
    const trust = how === '--bundle-key' ? [how, stage.path('key.jwk.json')] : [how];
    const args = ['--bundle', folder, ...trust, '--at', '2026-11-21T04:00:00Z'];
    const capture = captureOf(stage.sign({ caller: 'broker', route: 'orders-read' }));
    const { report } = await stage.report(capture, ...args);
    expect(report.decision).toMatchObject({ reason: 'source_subject_mismatch' });
    expect(report.rules.map(({ canonical }) => canonical)).toEqual([true, true, false, true]);
    expect(report.bundle.warnings).toEqual([expect.stringMatching(/^subject_not_canonical: bundle\.jws: /)]);
    const { stdout } = await stage.explain(capture, ...args);
    expect(stdout).toMatch(/rule 2 no: .*matches nothing/);
  });

  it('of a target: what its route has', async () => {
    const target = '/v1/orders/18?fields=id&b&c=';
    const [line] = await differingLines(read, withTarget(target));
    expect(line?.signed).toBe(
      '/v1/orders/[2 characters]?[6 characters]=[2 characters]&[6 characters]=[5 characters]',
    );
    expect(line?.rebuilt).toBe(
      '/v1/orders/[2 characters]?[6 characters]=[2 characters]&[1 character]&[1 character]=',
    );
    const [open] = await differingLines(read, withTarget(target), '--show-values');
    expect(open).toMatchObject({ signed: '/v1/orders/17?fields=id&fields=total', rebuilt: target });
  });

  it('of identities: what the bundle has, and of a subject the prefix of a rule', async () => {
    const signed = stage.sign(tenants);
    const { report } = await stage.report(captureOf(signed));
    expect(report).toMatchObject({
      values: 'redacted',
      caller: {
        issuer: 'https://broker.shop.example',
        subject: 'spiffe://shop.example/ns/prod/[10 characters]',
      },
      credentials: { passport: { passport_id: '[31 characters]', key_id: 'broker-ed' } },
      decision: { outcome: 'allowed' },
    });
    const open = await stage.report(captureOf(signed), '--show-values');
    expect(open.report).toMatchObject({
      values: 'shown',
      caller: { subject: 'spiffe://shop.example/ns/prod/sa/billing' },
    });
  });

  it('of a host: one of the site', async () => {
    const other = (authority: string) => (wire: WireRequest) => ({ ...wire, authority });
    const shownFor = async (authority: string, ...args: readonly string[]) => {
      const capture = captureOf(stage.sign(read, { received: other(authority) }));
      return (await stage.report(capture, ...args)).report.request.authority;
    };
    expect(await shownFor('partners.shop.example:8443')).toBe('partners.shop.example:8443');
    expect(await shownFor('API.shop.example:443')).toBe('API.shop.example:443');
    expect(await shownFor('elsewhere.example')).toBe('[17 characters]');
    expect(await shownFor('elsewhere.example', '--show-values')).toBe('elsewhere.example');
    expect(await shownFor('me:pw@api.shop.example', '--show-values')).toBe('[5 characters]@api.shop.example');
  });

  it('of the names of headers: those of the route, and those of a list', async () => {
    const signed = stage.sign(tenants, {
      transcript: (draft) => {
        draft.headers = [...draft.headers, { name: 'x-unheard-of', value: 'a' }];
      },
      received: (wire) => withLines(wire, ['x-unheard-of', 'b']),
    });
    const { report } = await stage.report(captureOf(signed));
    expect(report.decision.detail).toBe('header.[12 characters]');
    expect(report.transcript.find(({ line }) => line === 'headers')?.signed).toBe(
      'accept,x-tenant,[12 characters]',
    );
    const open = await stage.report(captureOf(signed), '--show-values');
    expect(open.report.decision.detail).toBe('header.x-unheard-of');
  });

  it('and that more can be, where something is not', async () => {
    const capture = captureOf(stage.sign(read));
    expect((await stage.explain(capture)).stdout).toContain('--show-values');
    expect((await stage.explain(capture, '--show-values')).stdout).not.toContain('--show-values');
  });
});

const SECRET = 'S3CRET'.repeat(4);

describe('--show-values does not show', () => {
  it.each([
    ...['X-Amz-Signature', 'X-Goog-Signature', 'subscription-key', 'access_key', 'auth', 'jwt', 'assertion'],
    ...[
      'pwd',
      'otp',
      'pin',
      'sig',
      'token',
      'id_token_hint',
      'client_secret',
      'SAMLResponse',
      'hmac',
      'ticket',
    ],
    ...['nonce', 'state', 'code', 'code_verifier', 'bearer', 'user%5Bpassword%5D', 'pass'],
  ])('the parameter %s', async (name) => {
    const received = withTarget(`/v1/orders/17?${name}=${SECRET}&plain=value-of-plain`);
    const { stdout } = await stage.explain(captureOf(stage.sign(read, { received })), '--show-values');
    expect(stdout).not.toContain(SECRET);
    expect(stdout).toContain('value-of-plain');
  });

  it.each([
    ...[
      'ocp-apim-subscription-key',
      'x-functions-key',
      'x-auth',
      'x-auth-key',
      'x-hub-signature-256',
      'dpop',
    ],
    ...[
      'x-access-key',
      'x-api-key',
      'x-forwarded-authorization',
      'x-jwt-assertion',
      'x-goog-iap-jwt-assertion',
    ],
    ...['authorization-extra', 'x-amzn-oidc-data', 'x-csrf-token', 'cookie'],
  ])('the signed header %s', async (name) => {
    const signed = stage.sign(tenants, {
      transcript: (draft) => {
        draft.headers = [...draft.headers, { name, value: SECRET }].sort((a, b) =>
          a.name < b.name ? -1 : 1,
        );
      },
      received: (wire) => withLines(wire, [name, 'other']),
    });
    const { run, report } = await stage.report(captureOf(signed), '--show-values');
    expect(report.decision.detail).toBe(`header.${name}`);
    expect(run.stdout).not.toContain(SECRET);
  });
});

it('never shows a signed Authorization of the application', async () => {
  const authorization = { name: 'authorization', value: SECRET };
  const signed = stage.sign(
    { caller: 'billing', route: 'bearer' },
    {
      transcript: (draft) => {
        draft.headers = [authorization];
      },
    },
  );
  const { run, report } = await stage.report(captureOf(signed), '--show-values');
  expect(report.decision.detail).toBe('header.authorization');
  expect(run.stdout).not.toContain(SECRET);
  expect(run.stdout).not.toContain('of-the-application');
});

it('step 1 is about credentials too, and shows the route that matched when they are what failed', async () => {
  const received = (wire: WireRequest) => withoutHeader(wire, 'authorization');
  const capture = captureOf(stage.sign(read, { received }));
  const { report } = await stage.report(capture);
  expect(report.steps[0]).toMatchObject({
    verdict: 'failed',
    name: expect.stringContaining('credentials can be read'),
    detail: 'authorization_missing',
  });
  expect((await stage.explain(capture)).stdout).toContain('route orders-read: GET /v1/orders/{');
});

it('a proof of a time that no calendar has', async () => {
  const signed = stage.sign(read, {
    transcript: (draft) => {
      draft.issuedAtSeconds = 9_000_000_000_000_000;
      draft.expiresAtSeconds = draft.issuedAtSeconds + 60;
    },
  });
  const { run, report } = await stage.report(captureOf(signed));
  expect(run.exitCode).toBe(1);
  expect(report.decision.detail).toBe('proof_not_yet_valid');
  expect(report.when_made).toMatchObject({ at: '9000000000000000' });
});
