/** Declarations over the API, on both databases: what they compare, apply, leave, and never do by half. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Role } from '../../../src/control/contract/vocabulary.ts';
import { EnrollmentPolicies } from '../../../src/control/enrollment/policies.ts';
import { settleSources } from '../../../src/control/publishing/source-settlement.ts';
import { isJsonObject } from '../../../src/protocol/strict-json.ts';
import {
  type Declaration,
  DeclarationFixture,
  databaseServers,
  declared,
  SITE_ID,
  stepsOf,
} from './declaration-fixture.ts';

const SOURCE = 'eu-1 cluster';
const SECOND_ISSUER = 'https://oidc.example/id/second';

describe.each(databaseServers())('$name', (server) => {
  let fixture: DeclarationFixture;
  beforeAll(() => server.start());
  beforeEach(async () => {
    fixture = await DeclarationFixture.open(server);
  });
  afterEach(() => fixture.close());
  afterAll(() => server.stop());

  const revisions = () =>
    fixture.read((tx) =>
      tx.sources.inStates(SITE_ID, [
        ...(['draft', 'failed_draft', 'activating', 'publishing', 'active', 'suspended'] as const),
      ]),
    );
  const policies = () => fixture.read((tx) => tx.policies.ofSite(SITE_ID, ALL));
  /** As the publisher and the targets would. */
  const publish = async () => {
    await fixture.api.store.writeUnaudited(SITE_LOCK, async (tx) => {
      for (const row of await tx.sources.inStates(SITE_ID, ['publishing'])) {
        await tx.sourceRevisions.change(row, { awaitedRevision: 1 }, fixture.api.ms);
      }
    });
    await settleSources(fixture.api.store, SITE_ID, fixture.api.ms);
  };
  /** The only source, with an active revision. */
  const activeSource = async () => {
    await fixture.put(declared());
    await fixture.settled();
    await publish();
    const [active] = await revisions();
    if (active === undefined) throw new Error('missing');
    return active;
  };
  const AUDIENCE = declared(({ sources }) => Object.assign(sources?.[0] ?? {}, { audience: 'another' }));
  const ALL = { after: undefined, limit: 100 };
  const SITE_LOCK = { kind: 'site', siteId: SITE_ID } as const;

  it('creates everything where there is nothing, then has nothing to do', async () => {
    const answer = await fixture.put(declared());
    expect(answer.status).toBe(200);
    expect(stepsOf(answer)).toEqual([
      'create environment production',
      'create fleet europe',
      'create site shop-eu-1',
      ...(declared().brokers ?? []).map((each) => `create broker ${each.issuer} ${each.trust_domain}`),
      ...(declared().clients ?? []).flatMap(({ client_id: id, grants = [] }) => [
        `create client ${id}`,
        ...grants.map(({ resource }) => `create grant ${id} ${resource}`),
      ]),
      ...(declared().routes ?? []).flatMap(({ route_id: id }) => [
        `create route ${id}`,
        `create route_sources ${id}`,
      ]),
      `create source ${SOURCE}`,
      `activate source ${SOURCE}`,
      ...(declared().enrollment_policies ?? []).map(({ name }) => `create enrollment_policy ${name}`),
      ...(declared().targets ?? []).map((name) => `create target ${name}`),
    ]);
    expect(answer.json.tokens).toHaveLength(declared().targets?.length ?? 0);
    await fixture.settled();
    const again = await fixture.compare(declared());
    expect([stepsOf(again), again.json.unnamed]).toEqual([[], []]);
    expect((await fixture.put(declared(), '', { ifMatch: again.etag })).json.steps).toEqual([]);
  });

  it('records one audit event for each step, all of one request, and one change for the publisher', async () => {
    fixture.validation = 'invalid';
    const answer = await fixture.put(declared());
    const events = await fixture.read((tx) => tx.audit.list({ limit: 1000, reach: { kind: 'everything' } }));
    const ofRequest = events.filter(({ requestId }) => requestId === answer.headers['x-request-id']);
    expect(ofRequest).toHaveLength(stepsOf(answer).length);
    const changes = await fixture.read((tx) => tx.changes.pending(SITE_ID, 1000));
    expect(changes.filter(({ kind }) => kind === 'policy')).toHaveLength(1);
  });

  const CHANGED = declared((site) => {
    site.site.display_name = 'Renamed';
    site.clients?.push({
      client_id: 'new',
      subject: 'client:new',
      grants: [{ resource: 'a', access: 'read' }],
    });
    site.targets?.push('another');
    site.sources?.push({
      ...site.sources[0],
      name: 'second',
      audience: 'second',
      expected_scope: '',
    } as never);
    for (const source of site.sources ?? []) source.expected_scope = source.issuer.replace('https://', '');
  });

  it('changes nothing in a dry run, nor when a step or the site check fails', async () => {
    await fixture.put(declared());
    const before = await fixture.dump();
    const { etag, json } = await fixture.compare(CHANGED, '&prune=true');
    expect(json.steps).not.toEqual([]);
    expect(await fixture.dump()).toEqual(before);
    const faulty: readonly (readonly [string, (site: Declaration) => void])[] = [
      ['definition_invalid', ({ routes }) => routes?.push({ ...routes[0], route_id: 'same-path' } as never)],
      ['definition_invalid', ({ routes }) => Object.assign(routes?.[0] ?? {}, { path_template: '/a/../b' })],
      [
        // The targets have not reported that they know the member.
        'definition_invalid',
        ({ routes }) =>
          routes?.push({
            ...{ ...routes[0], route_id: 'x', path_template: '/x' },
            passport_header: 'X-Proofgate-Passport',
          } as never),
      ],
      [
        'source_scope_mismatch',
        ({ sources }) => Object.assign(sources?.at(-1) ?? {}, { expected_scope: 'x' }),
      ],
      [
        'verified_subject_invalid',
        ({ enrollment_policies: all }) =>
          all?.push({ ...all[0], name: 'p', verified_subject: 'system:serviceaccount:*:x' } as never),
      ],
    ];
    for (const [code, spoil] of faulty) {
      const spoiled = structuredClone(CHANGED);
      spoil(spoiled);
      const { code: found, json } = await fixture.put(spoiled, '', { ifMatch: etag });
      expect(found).toBe(code);
      // Nothing was detected of a source that was never validated.
      if (code === 'source_scope_mismatch') expect(JSON.stringify(json)).not.toContain('detected scope is');
    }
    expect(await fixture.dump()).toEqual(before);
  });

  it('lets one of two win that began at once', async () => {
    await fixture.put(declared());
    const { etag } = await fixture.compare(declared());
    const named = (display_name: string) =>
      fixture.put(
        declared((site) => Object.assign(site.site, { display_name })),
        '',
        { ifMatch: etag },
      );
    const answers = await Promise.all([named('One'), named('Two')]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412]);
    expect((await fixture.put(declared())).code).toBe('precondition_required');
  });

  it('sees what another operation changed since', async () => {
    await fixture.put(declared());
    const { etag } = await fixture.compare(declared());
    const grant = `/v1/sites/${SITE_ID}/clients/${declared().clients?.[0]?.client_id}/grants/other`;
    await fixture.api.expect(201, 'PUT', grant, { body: { access: 'read' } });
    expect((await fixture.put(declared(), '', { ifMatch: etag })).code).toBe('precondition_failed');
  });

  it('lists what it does not name; prune removes that, except targets', async () => {
    await fixture.put(declared());
    await fixture.settled();
    const bare = declared((site) => {
      for (const list of [
        'brokers',
        'clients',
        'routes',
        'sources',
        'enrollment_policies',
        'targets',
      ] as const) {
        site[list] = [];
      }
    });
    const { json } = await fixture.compare(bare);
    const kinds = (json.unnamed as { kind: string }[]).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(
      new Set(['enrollment_policy', 'route', 'client', 'broker', 'source', 'target']),
    );
    const pruned = await fixture.apply(bare, 'prune=true');
    expect(pruned.status).toBe(200);
    expect((pruned.json.unnamed as { kind: string }[]).map(({ kind }) => kind)).toEqual(['target', 'target']);
    expect(await policies()).toEqual([]);
    expect(await revisions()).toEqual([]);
    // A source of the same name is a new one.
    expect((await fixture.apply(declared())).status).toBe(200);
  });

  it('stores policies as waiting, and activates them with their source', async () => {
    fixture.validation = 'invalid';
    await fixture.put(declared());
    await fixture.settled();
    expect(await revisions()).toMatchObject([
      { state: 'failed_draft', failureCode: 'http_status', detectedScope: null },
    ]);
    expect((await policies()).map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    fixture.validation = 'valid';
    expect(stepsOf(await fixture.apply(declared()))).toEqual([`activate source ${SOURCE}`]);
    await fixture.settled();
    expect(await revisions()).toMatchObject([{ state: 'publishing' }]);
    await publish();
    expect(await revisions()).toMatchObject([{ state: 'active' }]);
    expect((await policies()).map(({ state }) => state)).toEqual(['active', 'active']);
    expect(stepsOf(await fixture.compare(declared()))).toEqual([]);
  });

  const BY = { actor: 'token:x', requestId: 'req_x' };

  it('does not end a suspension', async () => {
    const active = await activeSource();
    fixture.validation = 'invalid';
    await fixture.apply(AUDIENCE);
    await fixture.settled();
    fixture.validation = 'valid';
    const { etag } = await fixture.compare(AUDIENCE);
    await fixture.lifecycle.suspend(active, BY);
    const states = async () => (await revisions()).map(({ state }) => state);
    expect((await fixture.put(AUDIENCE, '', { ifMatch: etag })).code).toBe('source_state_conflict');
    const moved = declared(({ sources }) => Object.assign(sources?.[0] ?? {}, { audience: 'a third' }));
    expect((await fixture.compare(moved)).code).toBe('source_state_conflict');
    expect(await states()).toEqual(['suspended', 'failed_draft']);
    await fixture.lifecycle.resume(active, BY);
    await publish();
    expect((await fixture.apply(AUDIENCE)).status).toBe(200);
  });

  it('makes a new source when the one of that name is retired, though a draft is left', async () => {
    const active = await activeSource();
    fixture.validation = 'invalid';
    await fixture.apply(AUDIENCE);
    await fixture.settled();
    await fixture.lifecycle.retire(active, BY);
    const none = declared((site) => Object.assign(site, { enrollment_policies: [] }));
    expect((await fixture.apply(none, 'prune=true')).status).toBe(200);
    await fixture.settled();
    const sources = await fixture.read((tx) => tx.sources.list({ siteId: SITE_ID }, ALL));
    expect(sources.map(({ displayName }) => displayName)).toEqual([SOURCE, SOURCE]);
  });

  it('keeps several replay stores while the file does not name them, and warns of them', async () => {
    const stores = (replay_stores?: 'one' | 'per_region') =>
      declared(({ site }) => Object.assign(site, replay_stores && { replay_stores }));
    const warning = expect.objectContaining({ code: 'replay_per_region' });
    await fixture.put(declared());
    expect((await fixture.compare(declared())).json.warnings).not.toContainEqual(warning);
    const changed = await fixture.apply(stores('per_region'));
    expect(changed.json).toMatchObject({ steps: [{ changes: ['replay_stores: "one" -> "per_region"'] }] });
    const kept = await fixture.compare(declared());
    expect([stepsOf(kept), kept.json.warnings]).toEqual([[], expect.arrayContaining([warning])]);
    expect((await fixture.apply(stores('one'))).json.warnings).not.toContainEqual(warning);
    expect((await fixture.api.call('GET', `/v1/sites/${SITE_ID}`)).json.replay_stores).toBe('one');
  });

  it('takes no lock when nothing differs', async () => {
    await fixture.put(declared());
    await fixture.settled();
    const { etag } = await fixture.compare(declared());
    const mutate = jest.spyOn(fixture.api.store, 'mutate');
    const answer = await fixture.put(declared(), '', { ifMatch: etag });
    expect(answer.json).toMatchObject({ steps: [], activating: [{ name: SOURCE, state: 'publishing' }] });
    expect(mutate).not.toHaveBeenCalled();
  });

  it('leaves a draft beside a revision that is as declared', async () => {
    const active = await activeSource();
    fixture.validation = 'invalid';
    await fixture.apply(AUDIENCE);
    await fixture.settled();
    fixture.validation = 'valid';
    const bound = async () => (await policies()).map((row) => [row.sourceRevision, row.nextSourceRevision]);
    expect(await bound()).toEqual(Array(2).fill([1, 2]));
    const answer = await fixture.apply(declared());
    expect(stepsOf(answer)).toEqual(
      (declared().enrollment_policies ?? []).map(({ name }) => `change enrollment_policy ${name}`),
    );
    expect(await bound()).toEqual(Array(2).fill([1, null]));
    expect(stepsOf(await fixture.compare(declared()))).toEqual([]);
    expect(await revisions()).toMatchObject([
      { revision: 1, state: 'active', audience: active.audience },
      { revision: 2, state: 'failed_draft', audience: 'another' },
    ]);
    // Declared, the draft is activated.
    expect(stepsOf(await fixture.apply(AUDIENCE))).toContain(`activate source ${SOURCE}`);
  });

  it('moves policies to another revision of their source when that is active, and not before', async () => {
    await fixture.put(declared());
    await fixture.settled();
    await publish();
    const moved = declared(({ sources }) => Object.assign(sources?.[0] ?? {}, { audience: 'another' }));
    expect((await fixture.apply(moved)).status).toBe(200);
    const bound = async () =>
      (await policies()).map((row) => [row.state, row.sourceRevision, row.nextSourceRevision]);
    expect(await bound()).toEqual(Array(2).fill(['active', 1, 2]));
    expect(stepsOf(await fixture.compare(moved))).toEqual([]);
    await fixture.settled();
    await publish();
    expect(await bound()).toEqual(Array(2).fill(['active', 2, null]));
    expect(stepsOf(await fixture.compare(moved))).toEqual([]);
  });

  describe('a draft that is edited to another issuer while policies wait for it', () => {
    const ISSUER = declared().sources?.[0]?.issuer;
    const OTHER = 'https://oidc.eu-2.clusters.example/id/1';
    const moved = declared((site) => {
      const coordinates = { issuer: OTHER, jwks_uri: `${OTHER}/keys`, expected_scope: OTHER.slice(8) };
      Object.assign(site.sources?.[0] ?? {}, coordinates);
      site.enrollment_policies = [];
    });
    const service = () => new EnrollmentPolicies(fixture.api);
    const bound = async () => {
      const page = { after: undefined, limit: 100 };
      const views = await service().ofSite(SITE_ID, page);
      return views.map((view) => [view.state, view.source_revision, view.refuses_with]);
    };

    it('does not activate them', async () => {
      fixture.validation = 'invalid';
      await fixture.put(declared());
      await fixture.settled();
      fixture.validation = 'valid';
      expect((await fixture.apply(moved)).status).toBe(200);
      await fixture.settled();
      await publish();
      expect(await revisions()).toMatchObject([{ state: 'active', issuer: OTHER }]);
      expect(await bound()).toEqual(Array(2).fill(['waiting', 1, 'policy_issuer_mismatch']));
    });

    it('does not become the revision of active ones', async () => {
      await fixture.put(declared());
      await fixture.settled();
      await publish();
      fixture.validation = 'invalid';
      await fixture.apply(declared(({ sources }) => Object.assign(sources?.[0] ?? {}, { audience: 'x' })));
      await fixture.settled();
      expect((await policies()).map((row) => row.nextSourceRevision)).toEqual([2, 2]);
      fixture.validation = 'valid';
      expect((await fixture.apply(moved)).status).toBe(200);
      await fixture.settled();
      await publish();
      expect(await revisions()).toMatchObject([{ revision: 2, state: 'active', issuer: OTHER }]);
      expect(await bound()).toEqual(Array(2).fill(['active', 1, 'policy_revision_outdated']));
    });

    it('does not let a deactivated one be reactivated before it is published', async () => {
      fixture.validation = 'invalid';
      await fixture.put(declared());
      await fixture.settled();
      const [policy] = await policies();
      const id = String(policy?.id);
      const by = { actor: 'token:x', requestId: 'req_x' };
      await service().deactivate(id, by);
      await expect(service().reactivate(id, by)).rejects.toMatchObject({ code: 'policy_state_conflict' });
      fixture.validation = 'valid';
      await fixture.apply(declared());
      await fixture.settled();
      await publish();
      expect(await revisions()).toMatchObject([{ state: 'active', issuer: ISSUER }]);
      const active = await service().reactivate(id, by);
      expect([active.state, active.refuses_with]).toEqual(['active', undefined]);
    });
  });

  it('rejects a site with two policies or two sources of one name, and names them', async () => {
    await fixture.put(declared());
    await fixture.settled();
    const [policy] = await policies();
    const [source] = await fixture.read((tx) => tx.sources.list({ siteId: SITE_ID }, ALL));
    if (policy === undefined || source === undefined) throw new Error('missing');
    const [{ etag }, before] = [await fixture.compare(declared()), await policies()];
    const rejected = async (ids: readonly string[]) => {
      const none = declared((site) => Object.assign(site, { enrollment_policies: [] }));
      for (const answer of [
        await fixture.compare(declared()),
        await fixture.compare(none, '&prune=true'),
        await fixture.put(none, '?prune=true', { ifMatch: etag }),
      ]) {
        expect([answer.status, answer.code]).toEqual([409, 'already_exists']);
        for (const id of ids) expect(answer.text).toContain(id);
      }
    };
    const write = fixture.api.store.writeUnaudited.bind(fixture.api.store, SITE_LOCK);
    const secondPolicy = { ...policy, id: 'pol_second', reference: 'second', verifiedSubject: 'other' };
    await write((tx) => tx.policies.add(secondPolicy));
    await rejected([policy.id, 'pol_second']);
    await write((tx) => tx.policies.change(secondPolicy, { state: 'deleted' }, fixture.api.ms));
    expect((await fixture.compare(declared())).status).toBe(200);

    const [revision] = await revisions();
    if (revision === undefined) throw new Error('missing');
    const secondRevision = { ...revision, sourceId: 'src_second', state: 'suspended' as const };
    await write(async (tx) => {
      await tx.sources.add({ ...source, id: 'src_second' });
      await tx.sourceRevisions.add(secondRevision);
    });
    await rejected([source.id, 'src_second']);
    await write((tx) => tx.sourceRevisions.change(secondRevision, { state: 'retired' }, fixture.api.ms));
    expect((await fixture.compare(declared())).status).toBe(200);
    expect(await policies()).toEqual(before);
  });

  it('rejects changes of fixed members and of pinned keys', async () => {
    await fixture.put(declared());
    const other = {
      kid: 'x',
      alg: 'Ed25519',
      jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    };
    const changes: readonly (readonly [string, (site: Declaration) => void])[] = [
      ['member_fixed', (site) => Object.assign(site, { environment: 'elsewhere' })],
      ['member_fixed', ({ site }) => Object.assign(site, { trust_domain: 'other.example' })],
      [
        'member_fixed',
        ({ enrollment_policies: all }) => Object.assign(all?.[0] ?? {}, { verified_subject: 'other' }),
      ],
      ['broker_keys_differ', ({ brokers }) => Object.assign(brokers?.[0] ?? {}, { keys: [other] })],
    ];
    for (const [code, change] of changes) expect((await fixture.compare(declared(change))).code).toBe(code);
  });

  it('leaves a policy’s source to `ctl rebind`, and has nothing to do after it', async () => {
    await fixture.put(declared());
    const addSource = ({ sources }: Declaration) => {
      const scope = new URL(SECOND_ISSUER);
      const changes = { issuer: SECOND_ISSUER, expected_scope: `${scope.host}${scope.pathname}` };
      sources?.push({ ...(sources[0] as (typeof sources)[0]), ...changes, name: 'second' });
    };
    expect((await fixture.apply(declared(addSource))).status).toBe(200);
    await fixture.settled();
    const moved = declared((site) => {
      addSource(site);
      Object.assign(site.enrollment_policies?.[0] ?? {}, { source: 'second' });
    });
    const { name } = declared().enrollment_policies?.[0] ?? {};
    const policy = (await policies()).find(({ displayName }) => displayName === name);
    if (policy === undefined) throw new Error('missing');
    const refused = await fixture.compare(moved);
    expect(refused.code).toBe('member_fixed');
    expect(refused.text).toContain(`ctl rebind ${policy.id}`);
    const second = (await revisions()).find(({ issuer }) => issuer === SECOND_ISSUER);
    const rebinding = {
      source_id: second?.sourceId ?? '',
      source_revision: 1,
      expected_issuer: SECOND_ISSUER,
    };
    const { store, nowMs } = fixture.api;
    const by = { actor: 'bootstrap', requestId: 'req_test' };
    await new EnrollmentPolicies({ store, nowMs }).rebind(policy.id, rebinding, policy.version, by);
    expect(stepsOf(await fixture.compare(moved))).toEqual([]);
  });

  it('names what is wrong with a declaration', async () => {
    const faults: readonly (readonly [unknown, (site: Declaration) => void])[] = [
      [
        { pointer: '/body/clients/0/grants/0/acess' },
        ({ clients }) => Object.assign(clients?.[0]?.grants?.[0] ?? {}, { acess: 'read' }),
      ],
      [{ pointer: '/body/clients/2' }, ({ clients }) => clients?.splice(2, 0, clients[0] as never)],
      [
        { pointer: '/body/enrollment_policies/0/source' },
        ({ enrollment_policies: all }) => Object.assign(all?.[0] ?? {}, { source: 'x' }),
      ],
      [
        { pointer: '/body/clients/0/subject' },
        ({ clients }) => Object.assign(clients?.[0] ?? {}, { subject: 'spiffe://shop.example/a/../b' }),
      ],
      [
        { pointer: '/body/routes/0/allowed_sources/0/subject_prefix' },
        ({ routes }) =>
          Object.assign(routes?.[0]?.allowed_sources[0] ?? {}, {
            subject_prefix: 'spiffe://shop.example/a/../b/',
          }),
      ],
      [{ pointer: '/body/site/site_id' }, ({ site }) => Object.assign(site, { site_id: 'another' })],
    ];
    for (const [fault, spoil] of faults) {
      const { code, json } = await fixture.put(declared(spoil));
      expect([code, json.errors]).toMatchObject(['request_malformed', [fault]]);
    }
  });

  describe('permissions', () => {
    const operator = (role: Role, kind: 'installation' | 'environment' | 'site', id = '') =>
      fixture.api.operator(`${role}-${kind}-${id}`, role, { kind, id });

    // The same code decides on both databases.
    if (server.name === 'sqlite') {
      it.each<[string, string, (site: Declaration) => void]>([
        ['site', 'administer', ({ site }) => Object.assign(site, { display_name: 'x' })],
        [
          'broker',
          'administer',
          (site) => Object.assign(site.brokers?.[0] ?? {}, { max_passport_ttl_seconds: 61 }),
        ],
        ['target', 'administer', ({ targets }) => targets?.push('x')],
        ['client', 'operate', ({ clients }) => clients?.push({ client_id: 'x', subject: 'x' })],
        ['grant', 'operate', ({ clients }) => clients?.[0]?.grants?.push({ resource: 'x', access: 'read' })],
        ['route', 'operate', ({ routes }) => Object.assign(routes?.[0] ?? {}, { signed_headers: ['x-a'] })],
        [
          'route_sources',
          'operate',
          ({ routes }) => Object.assign(routes?.[0]?.allowed_sources[0] ?? {}, { trust_domain: 'x' }),
        ],
        ['source', 'operate', ({ sources }) => Object.assign(sources?.[0] ?? {}, { on_suspend: 'revoke' })],
        [
          'enrollment_policy',
          'operate',
          ({ enrollment_policies: all }) => Object.assign(all?.[0] ?? {}, { max_key_lifetime_seconds: 61 }),
        ],
      ])('of a step for a %s: %s', async (kind, permission, change) => {
        await fixture.put(declared());
        await fixture.settled();
        const wanted = declared(change);
        const { etag, json } = await fixture.compare(wanted);
        expect((json.steps as unknown[]).filter(isJsonObject)).toMatchObject([{ kind, permission }]);
        const lacking = operator(permission === 'operate' ? 'approver' : 'operator', 'site', SITE_ID);
        const refused = await fixture.put(wanted, '', { ifMatch: etag, token: lacking });
        expect([refused.status, refused.code]).toEqual([403, 'permission_denied']);
        expect(await fixture.compare(wanted)).toMatchObject({ etag, json: { steps: json.steps } });
        const enough = operator(permission === 'operate' ? 'operator' : 'admin', 'site', SITE_ID);
        expect((await fixture.put(wanted, '', { ifMatch: etag, token: enough })).status).toBe(200);
      });
    }

    it('applies nothing when one of many steps is forbidden', async () => {
      await fixture.put(declared());
      const before = await fixture.dump();
      const { etag } = await fixture.compare(CHANGED);
      const token = operator('operator', 'site', SITE_ID);
      expect((await fixture.put(CHANGED, '', { ifMatch: etag, token })).code).toBe('permission_denied');
      expect(await fixture.dump()).toEqual(before);
    });

    it('decide whether a dry run says what would fail; it never takes a lock', async () => {
      await fixture.put(declared());
      await fixture.settled();
      const invalid = declared(({ enrollment_policies: all }) => {
        all?.push({ ...all[0], name: 'p', verified_subject: 'system:serviceaccount:*:x' } as never);
      });
      const mutate = jest.spyOn(fixture.api.store, 'mutate');
      const write = jest.spyOn(fixture.api.store, 'writeUnaudited');
      expect((await fixture.compare(invalid)).code).toBe('verified_subject_invalid');
      const viewed = await fixture.compare(invalid, '', { token: operator('viewer', 'site', SITE_ID) });
      expect(stepsOf(viewed)).toEqual(['create enrollment_policy p']);
      expect(mutate).not.toHaveBeenCalled();
      // Some of the permissions are not enough.
      const mixed = structuredClone(invalid);
      mixed.targets?.push('another');
      const some = await fixture.compare(mixed, '', { token: operator('operator', 'site', SITE_ID) });
      expect(stepsOf(some)).toEqual(['create enrollment_policy p', 'create target another']);
      expect(mutate).not.toHaveBeenCalled();
      expect(write).not.toHaveBeenCalled();
    });

    it('of a new site are those where it is created; who may read nothing there learns nothing', async () => {
      const admin = (id: string) => operator('admin', 'environment', id);
      expect((await fixture.put(declared(), '', { token: admin('env_none') })).code).toBe('not_found');
      const reader = operator('operator', 'installation');
      expect((await fixture.put(declared(), '', { token: reader })).code).toBe('permission_denied');
      const { json } = await fixture.api.expect(201, 'POST', '/v1/environments', {
        body: { name: 'production' },
      });
      expect((await fixture.put(declared(), '', { token: admin(String(json.environment_id)) })).status).toBe(
        200,
      );
      expect((await fixture.put(declared(), '?dry_run=true', { token: admin('env_none') })).code).toBe(
        'not_found',
      );
      expect(
        (await fixture.put(declared(), '?dry_run=true', { token: operator('viewer', 'site', SITE_ID) }))
          .status,
      ).toBe(200);
    });
  });
});

it('lets other work run between the rows that it writes, though SQLite runs in the same thread', async () => {
  const server = databaseServers().find(({ name }) => name === 'sqlite');
  if (server === undefined) throw new Error('missing');
  const fixture = await DeclarationFixture.open(server);
  const grants = Array.from({ length: 5000 }, (_, i) => ({ resource: `r${i}`, access: 'read' as const }));
  const many = declared(({ clients }) => clients?.push({ client_id: 'many', subject: 'many', grants }));
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  count();
  const write = fixture.api.store.mutate.bind(fixture.api.store);
  let turnsOfWrite = 0;
  jest.spyOn(fixture.api.store, 'mutate').mockImplementation(async (lock, work) => {
    const before = turns;
    const result = await write(lock, work);
    turnsOfWrite = Math.max(turnsOfWrite, turns - before);
    return result;
  });
  const { status } = await fixture.put(many);
  counting = false;
  expect(status).toBe(200);
  // 5000 grants and as many audit events, at most 500 rows between two turns.
  expect(turnsOfWrite).toBeGreaterThanOrEqual(18);
  await fixture.close();
  await server.stop();
});
