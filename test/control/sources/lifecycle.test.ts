/** Tests Trust Anchor Sources from draft to retired, with a real issuer and a real store. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DEFAULT_REFRESH_INTERVAL_MS } from '../../../src/control/issuers/key-set-cache.ts';
import { MAX_KEY_AGE_MS } from '../../../src/control/issuers/source-keys.ts';
import { liveKeySources } from '../../../src/control/sources/key-set-records.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import { makeSigner } from '../../support/fixtures/token-signer.ts';
import { BY, EnrollmentEnvironment, refusalOf, SITE } from '../enrollment/enrollment-fixture.ts';

describe('Trust Anchor Sources', () => {
  let env: EnrollmentEnvironment;

  beforeEach(async () => {
    env = await EnrollmentEnvironment.open();
  });
  afterEach(() => env.close());

  const stateOf = async (name: Parameters<typeof env.sources.drafts.revision>[0]) =>
    (await env.sources.drafts.revision(name)).state;

  test('a draft is there, says nothing of validation, and takes no slot', async () => {
    const { view, replayed } = await env.sources.drafts.create(SITE, env.sourceCreation(), BY);
    expect(replayed).toBe(false);
    expect(view).toMatchObject({ kind: 'oidc_jwks', on_suspend: 'keep', on_retire: 'keep', version: 1 });
    expect(view.revisions).toHaveLength(1);
    expect(view.revisions[0]).toMatchObject({ revision: 1, state: 'draft', version: 1 });
    expect(view.revisions[0]).not.toHaveProperty('fingerprint');
    expect(view.revisions[0]).not.toHaveProperty('detected_scope');
    expect(await env.auditKinds()).toEqual(['source.create']);
    expect(await env.changesOf()).toEqual([]);
  });

  test('the same Idempotency-Key makes one source', async () => {
    const idempotency = { key: 'once', requestHash: 'abc' };
    const first = await env.sources.drafts.create(SITE, env.sourceCreation(), { ...BY, idempotency });
    const again = await env.sources.drafts.create(SITE, env.sourceCreation(), { ...BY, idempotency });
    expect(again).toMatchObject({ replayed: true, view: { source_id: first.view.source_id } });
    expect(await env.sources.drafts.ofSite(SITE, { after: undefined, limit: 10 })).toHaveLength(1);
  });

  test('validation reports revision, fingerprint and detected scope', async () => {
    const name = await env.draft();
    const view = await env.sources.lifecycle.validate(name, BY);
    expect(view).toMatchObject({ state: 'validated', revision: 1, detected_scope: env.scope });
    expect(view.fingerprint).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(view).not.toHaveProperty('failure');
    const keySet = await env.read((tx) => tx.sources.keySet(name.sourceId, 1));
    expect(JSON.parse(keySet?.jwks ?? '{}')).toEqual(env.issuer.keySet());
    expect(await env.auditKinds()).toEqual(['source.create', 'source_revision.validate']);
  });

  test('a source whose servers name different key sets is valid once its discovery is skipped', async () => {
    env.issuer.discoveryOverrides = { jwks_uri: `${env.issuer.issuer}/other-server/keys` };
    const name = await env.draft();
    const failed = await env.sources.lifecycle.validate(name, BY);
    expect(failed).toMatchObject({
      state: 'failed_draft',
      discovery: 'checked',
      failure: { code: 'discovery_jwks_uri_mismatch' },
    });
    await env.sources.drafts.editRevision(name, { discovery: 'skipped' }, failed.version, BY);
    expect(await env.sources.lifecycle.validate(name, BY)).toMatchObject({
      state: 'validated',
      discovery: 'skipped',
      detected_scope: env.scope,
    });
    const next = await env.sources.drafts.get(name.sourceId);
    expect(next.revisions[0]).toMatchObject({ discovery: 'skipped' });
    env.issuer.discoveryOverrides = {};
  });

  test('a validation that fails makes a failed draft with a reason, which can be edited and validated again', async () => {
    env.issuer.setFault('keys', { kind: 'status', status: 500 });
    const name = await env.draft();
    const failed = await env.sources.lifecycle.validate(name, BY);
    expect(failed).toMatchObject({ state: 'failed_draft', failure: { code: 'http_status' } });
    expect(failed).not.toHaveProperty('fingerprint');
    env.issuer.setFault('keys', undefined);
    const edited = await env.sources.drafts.editRevision(name, { audience: 'another' }, failed.version, BY);
    expect(edited).toMatchObject({ state: 'draft', audience: 'another' });
    expect(edited).not.toHaveProperty('failure');
    expect(await env.sources.lifecycle.validate(name, BY)).toMatchObject({ state: 'validated' });
  });

  test('a validated revision that is validated again and fails forgets what was found', async () => {
    const name = await env.validated();
    env.issuer.discoveryOverrides = { issuer: 'https://elsewhere.example' };
    const view = await env.sources.lifecycle.validate(name, BY);
    expect(view).toMatchObject({
      state: 'failed_draft',
      failure: { code: 'discovery_issuer_mismatch' },
    });
    expect(view).not.toHaveProperty('fingerprint');
    expect(await refusalOf(env.sources.lifecycle.activate(name, env.scope, BY))).toBe(
      'source_state_conflict',
    );
  });

  test('what an issuer said of a version that was edited meanwhile does not count', async () => {
    const name = await env.draft();
    env.issuer.setFault('discovery', { kind: 'delay', delayMs: 300 });
    const validation = env.sources.lifecycle.validate(name, BY);
    await env.sources.drafts.editRevision(name, { audience: 'edited-meanwhile' }, 1, BY);
    expect(await refusalOf(validation)).toBe('precondition_failed');
    expect(await env.sources.drafts.revision(name)).toMatchObject({
      state: 'draft',
      audience: 'edited-meanwhile',
      version: 2,
    });
  });

  test('editing removes the keys that were fetched for what it was before', async () => {
    const name = await env.validated();
    const { version } = await env.sources.drafts.revision(name);
    await env.sources.drafts.editRevision(name, { jwks_uri: `${env.issuer.jwksUri}?v=2` }, version, BY);
    expect(await env.read((tx) => tx.sources.keySet(name.sourceId, 1))).toBeUndefined();
  });

  test('an edit from an old version is refused', async () => {
    const name = await env.validated();
    expect(await refusalOf(env.sources.drafts.editRevision(name, { audience: 'x' }, 1, BY))).toBe(
      'precondition_failed',
    );
    expect(await refusalOf(env.sources.drafts.change(name.sourceId, { display_name: 'x' }, 2, BY))).toBe(
      'precondition_failed',
    );
  });

  test('display name and key policies can be changed whatever the state', async () => {
    const { sourceId } = await env.active();
    const view = await env.sources.drafts.change(
      sourceId,
      { display_name: 'renamed', on_retire: 'revoke' },
      1,
      BY,
    );
    expect(view).toMatchObject({
      display_name: 'renamed',
      on_suspend: 'keep',
      on_retire: 'revoke',
      version: 2,
    });
  });

  test('sources of nothing but drafts can be deleted, others cannot', async () => {
    const draft = await env.validated();
    await env.sources.drafts.deleteSource(draft.sourceId, 1, BY);
    expect(await refusalOf(env.sources.drafts.get(draft.sourceId))).toBe('not_found');
    expect(await refusalOf(env.sources.drafts.revision(draft))).toBe('not_found');
    const active = await env.active();
    expect(await refusalOf(env.sources.drafts.deleteSource(active.sourceId, 1, BY))).toBe(
      'source_state_conflict',
    );
    const { version } = await env.sources.drafts.revision(active);
    expect(await refusalOf(env.sources.drafts.deleteRevision(active, version, BY))).toBe(
      'source_state_conflict',
    );
    expect(await stateOf(active)).toBe('active');
  });

  test('activation takes the slot, checks again, and puts the source on its way to a bundle', async () => {
    const name = await env.validated();
    const before = env.issuer.requests.keys;
    const activating = await env.sources.lifecycle.activate(name, env.scope, BY);
    expect(activating.state).toBe('activating');
    await env.sources.lifecycle.untilIdle();
    expect(await env.sources.drafts.revision(name)).toMatchObject({ state: 'publishing' });
    expect(env.issuer.requests.keys).toBe(before + 1);
    expect((await env.changesOf()).map(({ kind }) => kind)).toEqual(['policy']);
    expect(await env.read((tx) => tx.sources.ownerOfAudience('proofgate-shop'))).toBe(SITE);
    expect(await env.auditKinds()).toEqual([
      'source.create',
      'source_revision.validate',
      'source_revision.activate',
      'source_revision.pass_check',
    ]);
  });

  test('the operator must expect the scope that was detected', async () => {
    const name = await env.validated();
    expect(await refusalOf(env.sources.lifecycle.activate(name, 'another.example', BY))).toBe(
      'source_scope_mismatch',
    );
    expect(await stateOf(name)).toBe('validated');
  });

  test('a draft cannot be activated', async () => {
    const name = await env.draft();
    expect(await refusalOf(env.sources.lifecycle.activate(name, env.scope, BY))).toBe(
      'source_state_conflict',
    );
  });

  test('a check that fails returns the slot and says why', async () => {
    await env.addSite('small', 1);
    const name = await env.validated({ audience: 'small' }, 'small');
    env.issuer.dropAllKeys();
    expect(await env.activate(name)).toMatchObject({
      state: 'validated',
      failure: { code: 'key_set_no_usable_key' },
    });
    expect(await env.changesOf('small')).toEqual([]);
    env.issuer.rotate('RS256');
    expect((await env.activate(name)).state).toBe('publishing');
  });

  test('the check takes over keys that were rotated since the validation', async () => {
    const name = await env.validated();
    const { fingerprint } = await env.sources.drafts.revision(name);
    env.issuer.rotate();
    env.issuer.dropOldKeys();
    env.ms += 1000;
    const view = await env.activate(name);
    expect(view.state).toBe('publishing');
    expect(view.fingerprint).not.toBe(fingerprint);
    const keySet = await env.read((tx) => tx.sources.keySet(name.sourceId, 1));
    expect(JSON.parse(keySet?.jwks ?? '{}')).toEqual(env.issuer.keySet());
  });

  test('a check that a restart cut short is made again', async () => {
    const name = await env.validated();
    env.issuer.setFault('discovery', { kind: 'delay', delayMs: 2_000 });
    await env.sources.lifecycle.activate(name, env.scope, BY);
    const lost = env.sources;
    await env.restart();
    env.issuer.setFault('discovery', undefined);
    expect(await stateOf(name)).toBe('activating');
    await env.sources.lifecycle.checkStranded(60_000);
    expect(await stateOf(name)).toBe('activating');
    env.ms += 60_000;
    await env.sources.lifecycle.checkStranded(60_000);
    expect(await stateOf(name)).toBe('publishing');
    await lost.lifecycle.untilIdle();
  });

  test('the leader makes it again by itself', async () => {
    const name = await env.validated();
    env.issuer.setFault('discovery', { kind: 'delay', delayMs: 1_000 });
    await env.sources.lifecycle.activate(name, env.scope, BY);
    await env.restart();
    env.issuer.setFault('discovery', undefined);
    env.ms += 60_000;
    const changed = new Promise<void>((resolve) => {
      env.store.subscribe(({ topic }) => {
        if (topic === 'site_changed') resolve();
      });
    });
    const stop = env.plane.startJobs();
    await changed;
    await stop();
    expect(await stateOf(name)).toBe('publishing');
  });

  test('a revision that is retired while it is checked stays retired', async () => {
    const name = await env.validated();
    env.issuer.setFault('discovery', { kind: 'delay', delayMs: 300 });
    await env.sources.lifecycle.activate(name, env.scope, BY);
    await env.sources.lifecycle.retire(name, BY);
    await env.sources.lifecycle.untilIdle();
    expect(await stateOf(name)).toBe('retired');
    expect(env.faults).toEqual([]);
  });

  test('capacity holds under concurrency, and a slot that is returned can be taken', async () => {
    await env.addSite('small', 3);
    const names = await Promise.all(
      Array.from({ length: 12 }, () => env.validated({ audience: 'small' }, 'small')),
    );
    const outcomes = await Promise.all(
      names.map((name) => refusalOf(env.sources.lifecycle.activate(name, env.scope, BY))),
    );
    expect(outcomes.toSorted()).toEqual([
      ...Array(3).fill('not refused'),
      ...Array(9).fill('source_capacity_exhausted'),
    ]);
    await env.sources.lifecycle.untilIdle();
    const taken = names.filter((_, index) => outcomes[index] === 'not refused');
    const [first] = taken;
    const waiting = names.find((_, index) => outcomes[index] !== 'not refused');
    if (first === undefined || waiting === undefined) throw new Error('no source has a slot');
    await env.acknowledge(first);
    await env.sources.lifecycle.suspend(first, BY);
    expect(await refusalOf(env.activate(waiting))).toBe('source_capacity_exhausted');
    await env.sources.lifecycle.retire(first, BY);
    expect((await env.activate(waiting)).state).toBe('publishing');
  });

  test('an audience belongs to one site from its first activation on, for good', async () => {
    await env.addSite('other');
    const draft = await env.validated({}, 'other');
    const first = await env.active();
    expect(await refusalOf(env.activate(draft))).toBe('audience_taken');
    expect(await refusalOf(env.draft({}, 'other'))).toBe('audience_taken');
    const mine = await env.draft({ audience: 'mine' }, 'other');
    expect(
      await refusalOf(env.sources.drafts.editRevision(mine, { audience: 'proofgate-shop' }, 1, BY)),
    ).toBe('audience_taken');
    await env.sources.lifecycle.retire(first, BY);
    expect(await refusalOf(env.activate(draft))).toBe('audience_taken');
    expect(await stateOf(draft)).toBe('validated');
  });

  test('editing an active source makes a draft beside it, which replaces it without a second slot', async () => {
    await env.addSite('small', 1);
    const first = await env.active({ audience: 'small' }, 'small');
    const { view } = await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    expect(view).toMatchObject({ revision: 2, state: 'draft', audience: 'small' });
    expect(await refusalOf(env.sources.drafts.addRevision(first.sourceId, {}, BY))).toBe(
      'source_revision_in_progress',
    );
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    expect((await env.activate(second)).state).toBe('publishing');
    expect(await stateOf(first)).toBe('active');
    await env.acknowledge(second);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['retired', 'active']);
  });

  test('one revision of a source is on its way at a time', async () => {
    const first = await env.publishing();
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    expect(await refusalOf(env.sources.lifecycle.activate(second, env.scope, BY))).toBe(
      'source_revision_in_progress',
    );
    await env.acknowledge(first);
    await env.sources.lifecycle.suspend(first, BY);
    expect((await env.activate(second)).state).toBe('publishing');
    expect(await refusalOf(env.sources.lifecycle.resume(first, BY))).toBe('source_revision_in_progress');
  });

  /** A second revision whose bundle a verifier that is down will not acknowledge. */
  async function replacing(first: RevisionName): Promise<RevisionName> {
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.activate(second);
    return second;
  }

  test('a suspension stops the revision too that would open enrollment again', async () => {
    const first = await env.active();
    const second = await replacing(first);
    expect(await stateOf(second)).toBe('publishing');
    const before = (await env.auditKinds()).length;
    expect((await env.sources.lifecycle.suspend(first, BY)).state).toBe('suspended');
    expect((await env.auditKinds()).slice(before)).toEqual([
      'source_revision.suspend',
      'source_revision.suspend',
    ]);
    await env.acknowledge(second);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['suspended', 'suspended']);
    await env.sources.lifecycle.resume(second, BY);
    await env.acknowledge(second);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['retired', 'active']);
  });

  test('a suspension of the revision that is publishing stops the active one too', async () => {
    const first = await env.active();
    const second = await replacing(first);
    await env.sources.lifecycle.suspend(second, BY);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['suspended', 'suspended']);
    await env.sources.lifecycle.resume(first, BY);
    await env.acknowledge(first);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['active', 'retired']);
  });

  test('a suspension fails the check of a revision that is activating', async () => {
    const first = await env.active();
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.sources.lifecycle.declare(second, env.scope, BY);
    await env.sources.lifecycle.suspend(first, BY);
    await env.sources.lifecycle.check(second);
    expect(await env.sources.drafts.revision(second)).toMatchObject({
      state: 'validated',
      failure: { code: 'source_suspended' },
    });
    expect(await stateOf(first)).toBe('suspended');
  });

  test('a resumed source can be suspended again before verifiers acknowledge it', async () => {
    const name = await env.active();
    await env.sources.lifecycle.suspend(name, BY);
    await env.sources.lifecycle.resume(name, BY);
    expect((await env.sources.lifecycle.suspend(name, BY)).state).toBe('suspended');
    await env.acknowledge(name);
    expect(await stateOf(name)).toBe('suspended');
  });

  test('suspend, resume and retire', async () => {
    const name = await env.active();
    expect(await env.sources.lifecycle.suspend(name, BY)).toMatchObject({ state: 'suspended' });
    expect(await refusalOf(env.sources.lifecycle.suspend(name, BY))).toBe('source_state_conflict');
    const changesBefore = (await env.changesOf()).length;
    expect(await env.sources.lifecycle.resume(name, BY)).toMatchObject({ state: 'publishing' });
    expect(await env.changesOf()).toHaveLength(changesBefore + 1);
    await env.acknowledge(name);
    expect(await env.sources.lifecycle.retire(name, BY)).toMatchObject({ state: 'retired' });
    for (const event of ['suspend', 'resume', 'retire'] as const) {
      expect(await refusalOf(env.sources.lifecycle[event](name, BY))).toBe('source_state_conflict');
    }
    expect(await refusalOf(env.sources.lifecycle.validate(name, BY))).toBe('source_state_conflict');
    expect(await refusalOf(env.sources.drafts.addRevision(name.sourceId, {}, BY))).toBe(
      'source_state_conflict',
    );
  });

  test('a source that is retired does not come back by a draft that was left beside it', async () => {
    const first = await env.active();
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.sources.lifecycle.retire(first, BY);
    expect(await refusalOf(env.sources.lifecycle.activate(second, env.scope, BY))).toBe(
      'source_state_conflict',
    );
    const { version } = await env.sources.drafts.revision(second);
    await env.sources.drafts.deleteRevision(second, version, BY);
    expect((await env.sources.drafts.get(first.sourceId)).revisions).toHaveLength(1);
  });

  test('keys of what is live are refreshed, and kept for all instances', async () => {
    const name = await env.active();
    env.ms += 400_000;
    const signer = makeSigner('RS256');
    env.issuer.extraKeys = [signer.jwk];
    const live = await liveKeySources(env.store);
    expect(live).toEqual([{ ...name, jwksUri: env.issuer.jwksUri }]);
    await env.cache.refreshDue(live);
    const stored = await env.read((tx) => tx.sources.keySet(name.sourceId, 1));
    expect(stored?.jwks).toContain(signer.kid);
    expect(stored?.fetchedAtMs).toBe(env.ms);
    await env.sources.lifecycle.suspend(name, BY);
    expect(await liveKeySources(env.store)).toEqual([]);
  });

  test('the records show the keys, their last refresh and its last failure, also after a restart', async () => {
    const name = await env.active();
    const shown = () => env.sources.drafts.keys(name.sourceId);
    const { kid } = env.issuer.signer;
    const at = (ms: number) => new Date(ms).toISOString();
    const fetchedAtMs = env.ms;
    const keySet = {
      revision: 1,
      refreshed_at: at(fetchedAtMs),
      usable_until: at(fetchedAtMs + MAX_KEY_AGE_MS),
      next_refresh_at: at(fetchedAtMs + DEFAULT_REFRESH_INTERVAL_MS),
    };
    expect(await shown()).toEqual({
      source_id: name.sourceId,
      key_sets: [keySet],
      keys: [{ revision: 1, kid, algorithms: ['ES256'], thumbprint: expect.stringMatching(/^[\w-]{43}$/) }],
    });
    env.issuer.setFault('keys', { kind: 'status', status: 503 });
    env.ms += DEFAULT_REFRESH_INTERVAL_MS;
    await env.cache.refreshDue(await liveKeySources(env.store));
    const failed = {
      ...keySet,
      next_refresh_at: at(env.ms + DEFAULT_REFRESH_INTERVAL_MS),
      last_failure: { at: at(env.ms), code: 'http_status' },
    };
    await env.restart();
    expect((await shown()).key_sets).toEqual([failed]);
    await env.sources.lifecycle.suspend(name, BY);
    const { next_refresh_at: _, ...suspended } = failed;
    expect((await shown()).key_sets).toEqual([suspended]);
    await env.sources.lifecycle.retire(name, BY);
    expect(await shown()).toEqual({ source_id: name.sourceId, key_sets: [], keys: [] });
  });
});
