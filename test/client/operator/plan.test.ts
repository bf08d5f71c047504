import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { OperatorError } from '../../../src/client/operator/operator-error.ts';
import { type PlanStep, planSite } from '../../../src/client/operator/plan.ts';
import { refuseFixedChanges } from '../../../src/client/operator/plan-checks.ts';
import {
  brokerName,
  type CurrentSite,
  NOTHING,
  parseSiteFile,
  type SiteFile,
} from '../../../src/client/operator/site-file.ts';

const EXAMPLE = parseSiteFile(readFileSync('bundles/site.yaml', 'utf8'), 'site.yaml');
const BROKER = { ...EXAMPLE.brokers?.[0], issuer: 'https://broker.shop.example' };
const ANOTHER_KEY = {
  kid: 'another',
  alg: 'Ed25519',
  jwk: { kty: 'OKP', crv: 'Ed25519', x: 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg' },
};

/** State of Control after the example was applied. */
function applied(file: SiteFile): CurrentSite {
  const by = <T extends object>(
    list: readonly T[] | undefined,
    name: (item: T) => string,
    view: (item: T) => object,
  ) => new Map((list ?? []).map((item) => [name(item), { ...view(item) }]));
  return {
    environmentId: 'env_1',
    fleetId: 'flt_1',
    site: { ...file.site, version: 1, revision: 3 },
    brokers: by(file.brokers, brokerName, ({ issuer, url, ...definition }) => ({
      issuer,
      url,
      definition,
      published: true,
      version: 1,
    })),
    clients: by(
      file.clients,
      ({ client_id }) => client_id,
      ({ client_id, subject, context }) => ({ client_id, subject, context: context ?? {}, version: 1 }),
    ),
    grants: new Map(
      (file.clients ?? []).map(({ client_id, grants }) => [
        client_id,
        new Map((grants ?? []).map(({ resource, access }) => [resource, access])),
      ]),
    ),
    routes: by(
      file.routes,
      ({ route_id }) => route_id,
      ({ allowed_sources: _, ...route }) => ({ ...route, published: true }),
    ),
    routeSources: by(
      file.routes,
      ({ route_id }) => route_id,
      ({ route_id, allowed_sources }) => ({ route_id, allowed_sources }),
    ),
    sources: by(
      file.sources,
      ({ name }) => name,
      ({ name, issuer, jwks_uri, audience, expected_scope, on_suspend, on_retire }) => ({
        source_id: 'tas_1',
        display_name: name,
        on_suspend,
        on_retire,
        revisions: [
          { revision: 1, state: 'retired', issuer: 'https://old.example' },
          { revision: 2, state: 'active', issuer, jwks_uri, audience, detected_scope: expected_scope },
        ],
      }),
    ),
    policies: by(
      file.enrollment_policies,
      ({ name }) => name,
      ({ name, client, verified_subject, approval, max_key_lifetime_seconds }) => ({
        client_id: client,
        verified_subject,
        verified_issuer: file.sources?.[0]?.issuer,
        display_name: name,
        approval,
        max_key_lifetime_seconds,
        max_keys_per_token: 5,
        source_id: 'tas_1',
        source_revision: 2,
        state: 'active',
      }),
    ),
    targets: new Map((file.targets ?? []).map((name) => [name, { name }])),
  };
}

const CURRENT = applied(EXAMPLE);
const keep = { prune: false };
const brief = (steps: readonly PlanStep[]) => steps.map(({ verb, kind, name }) => `${verb} ${kind} ${name}`);

/** The example with a change. */
function changed(change: (file: ReturnType<typeof structuredClone<SiteFile>>) => void): SiteFile {
  const file = structuredClone(EXAMPLE);
  change(file);
  return file;
}

/** The sources of the example, with the newest revision in another state. */
function sourceInState(state: string): CurrentSite['sources'] {
  const source = CURRENT.sources.get('eu-1 cluster') ?? {};
  const [, newest] = Array.isArray(source.revisions) ? source.revisions : [];
  return new Map([['eu-1 cluster', { ...source, revisions: [{ ...newest, state }] }]]);
}

describe('planSite', () => {
  it('creates everything where there is nothing, targets last', () => {
    const steps = brief(planSite(EXAMPLE, NOTHING, keep));
    expect(steps).toEqual([
      'create environment production',
      'create fleet europe',
      'create site shop-eu-1',
      'create broker https://broker.shop.example shop.example',
      'create client billing',
      'create grant billing orders',
      'create grant billing invoices',
      'create client reporting',
      'create grant reporting orders',
      'create route orders-read',
      'create route_sources orders-read',
      'create route orders-write',
      'create route_sources orders-write',
      'create route payouts-write',
      'create route_sources payouts-write',
      'create source eu-1 cluster',
      'activate source eu-1 cluster',
      'create enrollment_policy billing in production',
      'create enrollment_policy reporting in production',
      'create target gateway-1',
      'create target gateway-2',
    ]);
  });

  it('does nothing the second time', () => {
    expect(planSite(EXAMPLE, CURRENT, { prune: true })).toEqual([]);
  });

  const CHANGES: readonly (readonly [string, (file: SiteFile) => void, readonly string[]])[] = [
    [
      'a setting of the site',
      ({ site }) => void Object.assign(site, { skew_seconds: 9 }),
      ['change site shop-eu-1'],
    ],
    [
      "a broker's class",
      ({ brokers }) => void Object.assign(brokers?.[0] ?? {}, { key_binding: 'software' }),
      ['change broker https://broker.shop.example shop.example'],
    ],
    [
      "a broker's URL",
      ({ brokers }) => void Object.assign(brokers?.[0] ?? {}, { url: 'https://b.example' }),
      ['change broker https://broker.shop.example shop.example'],
    ],
    [
      'a broker of the same issuer for another trust domain',
      ({ brokers }) => void brokers?.push({ ...BROKER, trust_domain: 'partner.example' }),
      ['create broker https://broker.shop.example partner.example'],
    ],
    ['keys of a broker taken out of the file', ({ brokers }) => void delete brokers?.[0]?.keys, []],
    [
      'a subject',
      ({ clients }) => void Object.assign(clients?.[0] ?? {}, { subject: 'client:b' }),
      ['change client billing'],
    ],
    ['a context taken out', ({ clients }) => void delete clients?.[0]?.context, ['change client billing']],
    [
      'a grant that became less',
      ({ clients }) => void Object.assign(clients?.[0]?.grants?.[0] ?? {}, { access: 'read' }),
      ['change grant billing orders'],
    ],
    [
      'a grant taken out, without being asked to prune',
      ({ clients }) => void clients?.[0]?.grants?.pop(),
      ['remove grant billing invoices'],
    ],
    [
      'a path',
      ({ routes }) => void Object.assign(routes?.[0] ?? {}, { path_template: '/v2/o' }),
      ['change route orders-read'],
    ],
    [
      'a restriction that is new',
      ({ routes }) => void Object.assign(routes?.[0] ?? {}, { signed_headers: ['x-tenant'] }),
      ['change route orders-read'],
    ],
    [
      'a source rule',
      ({ routes }) => void routes?.[0]?.allowed_sources.pop(),
      ['change route_sources orders-read'],
    ],
    [
      "a source's audience, which makes a revision and moves its policies",
      ({ sources }) => void Object.assign(sources?.[0] ?? {}, { audience: 'another' }),
      [
        'change source eu-1 cluster',
        'activate source eu-1 cluster',
        'change enrollment_policy billing in production',
        'change enrollment_policy reporting in production',
      ],
    ],
    [
      'what happens to keys, which makes none',
      ({ sources }) => void Object.assign(sources?.[0] ?? {}, { on_retire: 'keep' }),
      ['change source eu-1 cluster'],
    ],
    [
      "a policy's approval",
      (file) => void Object.assign(file.enrollment_policies?.[0] ?? {}, { approval: 'manual' }),
      ['change enrollment_policy billing in production'],
    ],
    ['another target', ({ targets }) => void targets?.push('gateway-3'), ['create target gateway-3']],
  ];
  it.each(CHANGES)('plans %s', (_what, change, expected) => {
    expect(brief(planSite(changed(change), CURRENT, keep))).toEqual(expected);
  });

  it('sees a restriction that was taken out of the file', () => {
    const routes = new Map(CURRENT.routes).set('orders-read', {
      ...CURRENT.routes.get('orders-read'),
      required_context: { environment: ['production'] },
    });
    expect(planSite(EXAMPLE, { ...CURRENT, routes }, keep)).toEqual([
      {
        verb: 'change',
        kind: 'route',
        name: 'orders-read',
        changes: ['required_context: {"environment":["production"]} -> (none)'],
      },
    ]);
  });

  it('sees a member of a broker that was taken out of the file', () => {
    const name = 'https://broker.shop.example shop.example';
    const held = CURRENT.brokers.get(name);
    const definition = { ...(held?.definition as object), max_passport_ttl_seconds: 3600 };
    const brokers = new Map([[name, { ...held, definition }]]);
    expect(brief(planSite(EXAMPLE, { ...CURRENT, brokers }, keep))).toEqual([`change broker ${name}`]);
  });

  it('moves policies that stayed behind on an older revision', () => {
    const policies = new Map(CURRENT.policies).set('billing in production', {
      ...CURRENT.policies.get('billing in production'),
      source_revision: 1,
    });
    expect(brief(planSite(EXAMPLE, { ...CURRENT, policies }, keep))).toEqual([
      'change enrollment_policy billing in production',
    ]);
  });

  it.each(['suspended', 'active'])('leaves a source alone that is %s', (state) => {
    const sources = sourceInState(state);
    expect(planSite(EXAMPLE, { ...CURRENT, sources }, keep)).toEqual([]);
  });

  it.each(['draft', 'failed_draft', 'validated', 'publishing', 'activating'])(
    'goes on with a source that is %s',
    (state) => {
      const sources = sourceInState(state);
      expect(brief(planSite(EXAMPLE, { ...CURRENT, sources }, keep))).toContain(
        'activate source eu-1 cluster',
      );
    },
  );

  it('removes before it creates: a renamed route takes the path of the one before', () => {
    const file = changed(
      ({ routes }) => void Object.assign(routes?.at(-1) ?? {}, { route_id: 'payouts-create' }),
    );
    expect(brief(planSite(file, CURRENT, { prune: true }))).toEqual([
      'remove route payouts-write',
      'create route payouts-create',
      'create route_sources payouts-create',
    ]);
  });

  it('removes what the file does not name only when asked to', () => {
    const file = changed((each) => {
      each.routes?.pop();
      each.clients?.pop();
      each.brokers = [];
      each.enrollment_policies?.pop();
    });
    expect(planSite(file, CURRENT, keep)).toEqual([]);
    expect(brief(planSite(file, CURRENT, { prune: true }))).toEqual([
      'remove enrollment_policy reporting in production',
      'remove route payouts-write',
      'remove client reporting',
      'remove broker https://broker.shop.example shop.example',
    ]);
  });
});

describe('refuseFixedChanges', () => {
  const codeOf = (file: SiteFile) => {
    try {
      refuseFixedChanges(file, CURRENT);
      return 'taken';
    } catch (error) {
      if (error instanceof OperatorError) return error.code;
      throw error;
    }
  };

  it('takes what is as it was, and whatever is new', () => {
    expect(codeOf(EXAMPLE)).toBe('taken');
    refuseFixedChanges(EXAMPLE, NOTHING);
  });

  const FIXED: readonly (readonly [string, (file: SiteFile) => void, string])[] = [
    ['a trust domain', ({ site }) => void Object.assign(site, { trust_domain: 'x.example' }), 'member_fixed'],
    [
      'an issuer URL',
      ({ site }) => void Object.assign(site, { issuer_url: 'https://x.example' }),
      'member_fixed',
    ],
    [
      'whom a policy lets in',
      (file) =>
        void Object.assign(file.enrollment_policies?.[0] ?? {}, {
          verified_subject: 'system:serviceaccount:a:b',
        }),
      'member_fixed',
    ],
    [
      "a policy's client",
      (file) => void Object.assign(file.enrollment_policies?.[0] ?? {}, { client: 'reporting' }),
      'member_fixed',
    ],
    [
      "a policy's source",
      (file) => void Object.assign(file.enrollment_policies?.[0] ?? {}, { source: 'another' }),
      'member_fixed',
    ],
    [
      'the issuer of a source that policies are bound to',
      ({ sources }) => void Object.assign(sources?.[0] ?? {}, { issuer: 'https://x.example' }),
      'member_fixed',
    ],
    [
      'the scope that a live source was validated for',
      ({ sources }) => void Object.assign(sources?.[0] ?? {}, { expected_scope: 'x.example' }),
      'source_scope_mismatch',
    ],
    [
      'a key that is not pinned',
      ({ brokers }) => void brokers?.[0]?.keys?.push(ANOTHER_KEY),
      'broker_keys_differ',
    ],
    [
      'that a pinned key is gone',
      ({ brokers }) => void Object.assign(brokers?.[0] ?? {}, { keys: [] }),
      'broker_keys_differ',
    ],
    [
      'another key under the name of a pinned one',
      ({ brokers }) => void Object.assign(brokers?.[0]?.keys?.[0] ?? {}, { jwk: ANOTHER_KEY.jwk }),
      'broker_keys_differ',
    ],
    [
      'another end of a pinned key',
      ({ brokers }) =>
        void Object.assign(brokers?.[0]?.keys?.[0] ?? {}, { not_after: '2030-01-01T00:00:00Z' }),
      'broker_keys_differ',
    ],
  ];
  it('takes a file that leaves the keys of a broker to broker-keys refresh', () => {
    expect(codeOf(changed(({ brokers }) => void delete brokers?.[0]?.keys))).toBe('taken');
  });

  it.each(FIXED)('refuses %s', (_what, change, code) => {
    expect(codeOf(changed(change))).toBe(code);
  });
});
