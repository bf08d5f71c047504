/** Tests Trust Anchor Sources from draft to retired, with a real issuer and a real store. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeSigner } from '../../fakes/token-signer.ts';
import { BY, EnrollmentWorld, refusalOf, SITE } from '../enrollment/enrollment-fixture.ts';

describe('Trust Anchor Sources', () => {
  let world: EnrollmentWorld;

  beforeEach(async () => {
    world = await EnrollmentWorld.open();
  });
  afterEach(() => world.close());

  const stateOf = async (name: Parameters<typeof world.sources.drafts.revision>[0]) =>
    (await world.sources.drafts.revision(name)).state;

  test('a draft is there, says nothing of validation, and takes no slot', async () => {
    const { view, replayed } = await world.sources.drafts.create(SITE, world.sourceCreation(), BY);
    expect(replayed).toBe(false);
    expect(view).toMatchObject({ kind: 'oidc_jwks', on_suspend: 'keep', on_retire: 'keep', version: 1 });
    expect(view.revisions).toHaveLength(1);
    expect(view.revisions[0]).toMatchObject({ revision: 1, state: 'draft', version: 1 });
    expect(view.revisions[0]).not.toHaveProperty('fingerprint');
    expect(view.revisions[0]).not.toHaveProperty('detected_scope');
    expect(await world.auditKinds()).toEqual(['source.create']);
    expect(await world.changesOf()).toEqual([]);
  });

  test('the same Idempotency-Key makes one source', async () => {
    const idempotency = { key: 'once', requestHash: 'abc' };
    const first = await world.sources.drafts.create(SITE, world.sourceCreation(), { ...BY, idempotency });
    const again = await world.sources.drafts.create(SITE, world.sourceCreation(), { ...BY, idempotency });
    expect(again).toMatchObject({ replayed: true, view: { source_id: first.view.source_id } });
    expect(await world.sources.drafts.ofSite(SITE, { after: undefined, limit: 10 })).toHaveLength(1);
  });

  test('validation reports revision, fingerprint and detected scope', async () => {
    const name = await world.draft();
    const view = await world.sources.lifecycle.validate(name, BY);
    expect(view).toMatchObject({ state: 'validated', revision: 1, detected_scope: world.scope });
    expect(view.fingerprint).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(view).not.toHaveProperty('failure');
    const keySet = await world.read((tx) => tx.sources.keySet(name.sourceId, 1));
    expect(JSON.parse(keySet?.jwks ?? '{}')).toEqual(world.issuer.keySet());
    expect(await world.auditKinds()).toEqual(['source.create', 'source_revision.validate']);
  });

  test('a validation that fails makes a failed draft with a reason, which can be edited and validated again', async () => {
    world.issuer.setFault('keys', { kind: 'status', status: 500 });
    const name = await world.draft();
    const failed = await world.sources.lifecycle.validate(name, BY);
    expect(failed).toMatchObject({ state: 'failed_draft', failure: { code: 'http_status' } });
    expect(failed).not.toHaveProperty('fingerprint');
    world.issuer.setFault('keys', undefined);
    const edited = await world.sources.drafts.editRevision(name, { audience: 'another' }, failed.version, BY);
    expect(edited).toMatchObject({ state: 'draft', audience: 'another' });
    expect(edited).not.toHaveProperty('failure');
    expect(await world.sources.lifecycle.validate(name, BY)).toMatchObject({ state: 'validated' });
  });

  test('a validated revision that is validated again and fails forgets what was found', async () => {
    const name = await world.validated();
    world.issuer.discoveryOverrides = { issuer: 'https://elsewhere.example' };
    const view = await world.sources.lifecycle.validate(name, BY);
    expect(view).toMatchObject({
      state: 'failed_draft',
      failure: { code: 'discovery_issuer_mismatch' },
    });
    expect(view).not.toHaveProperty('fingerprint');
    expect(await refusalOf(world.sources.lifecycle.activate(name, world.scope, BY))).toBe(
      'source_state_conflict',
    );
  });

  test('what an issuer said of a version that was edited meanwhile does not count', async () => {
    const name = await world.draft();
    world.issuer.setFault('discovery', { kind: 'delay', delayMs: 300 });
    const validation = world.sources.lifecycle.validate(name, BY);
    await world.sources.drafts.editRevision(name, { audience: 'edited-meanwhile' }, 1, BY);
    expect(await refusalOf(validation)).toBe('precondition_failed');
    expect(await world.sources.drafts.revision(name)).toMatchObject({
      state: 'draft',
      audience: 'edited-meanwhile',
      version: 2,
    });
  });

  test('editing removes the keys that were fetched for what it was before', async () => {
    const name = await world.validated();
    const { version } = await world.sources.drafts.revision(name);
    await world.sources.drafts.editRevision(name, { jwks_uri: `${world.issuer.jwksUri}?v=2` }, version, BY);
    expect(await world.read((tx) => tx.sources.keySet(name.sourceId, 1))).toBeUndefined();
  });

  test('an edit from an old version is refused', async () => {
    const name = await world.validated();
    expect(await refusalOf(world.sources.drafts.editRevision(name, { audience: 'x' }, 1, BY))).toBe(
      'precondition_failed',
    );
    expect(await refusalOf(world.sources.drafts.change(name.sourceId, { display_name: 'x' }, 2, BY))).toBe(
      'precondition_failed',
    );
  });

  test('display name and key policies can be changed whatever the state', async () => {
    const { sourceId } = await world.active();
    const view = await world.sources.drafts.change(
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
    const draft = await world.validated();
    await world.sources.drafts.deleteSource(draft.sourceId, 1, BY);
    expect(await refusalOf(world.sources.drafts.get(draft.sourceId))).toBe('not_found');
    expect(await refusalOf(world.sources.drafts.revision(draft))).toBe('not_found');
    const active = await world.active();
    expect(await refusalOf(world.sources.drafts.deleteSource(active.sourceId, 1, BY))).toBe(
      'source_state_conflict',
    );
    const { version } = await world.sources.drafts.revision(active);
    expect(await refusalOf(world.sources.drafts.deleteRevision(active, version, BY))).toBe(
      'source_state_conflict',
    );
    expect(await stateOf(active)).toBe('active');
  });

  test('activation takes the slot, checks again, and puts the source on its way to a bundle', async () => {
    const name = await world.validated();
    const before = world.issuer.requests.keys;
    const activating = await world.sources.lifecycle.activate(name, world.scope, BY);
    expect(activating.state).toBe('activating');
    await world.sources.lifecycle.settled();
    expect(await world.sources.drafts.revision(name)).toMatchObject({ state: 'publishing' });
    expect(world.issuer.requests.keys).toBe(before + 1);
    expect((await world.changesOf()).map(({ kind }) => kind)).toEqual(['policy']);
    expect(await world.read((tx) => tx.sources.ownerOfAudience('proofgate-shop'))).toBe(SITE);
    expect(await world.auditKinds()).toEqual([
      'source.create',
      'source_revision.validate',
      'source_revision.activate',
      'source_revision.pass_check',
    ]);
  });

  test('the operator must expect the scope that was detected', async () => {
    const name = await world.validated();
    expect(await refusalOf(world.sources.lifecycle.activate(name, 'another.example', BY))).toBe(
      'source_scope_mismatch',
    );
    expect(await stateOf(name)).toBe('validated');
  });

  test('a draft cannot be activated', async () => {
    const name = await world.draft();
    expect(await refusalOf(world.sources.lifecycle.activate(name, world.scope, BY))).toBe(
      'source_state_conflict',
    );
  });

  test('a check that fails returns the slot and says why', async () => {
    await world.addSite('small', 1);
    const name = await world.validated({ audience: 'small' }, 'small');
    world.issuer.dropAllKeys();
    expect(await world.activate(name)).toMatchObject({
      state: 'validated',
      failure: { code: 'key_set_no_usable_key' },
    });
    expect(await world.changesOf('small')).toEqual([]);
    world.issuer.rotate('RS256');
    expect((await world.activate(name)).state).toBe('publishing');
  });

  test('the check takes over keys that were rotated since the validation', async () => {
    const name = await world.validated();
    const { fingerprint } = await world.sources.drafts.revision(name);
    world.issuer.rotate();
    world.issuer.dropOldKeys();
    world.ms += 1000;
    const view = await world.activate(name);
    expect(view.state).toBe('publishing');
    expect(view.fingerprint).not.toBe(fingerprint);
    const keySet = await world.read((tx) => tx.sources.keySet(name.sourceId, 1));
    expect(JSON.parse(keySet?.jwks ?? '{}')).toEqual(world.issuer.keySet());
  });

  test('a check that a restart cut short is made again', async () => {
    const name = await world.validated();
    world.issuer.setFault('discovery', { kind: 'delay', delayMs: 2_000 });
    await world.sources.lifecycle.activate(name, world.scope, BY);
    const lost = world.sources;
    await world.restart();
    world.issuer.setFault('discovery', undefined);
    expect(await stateOf(name)).toBe('activating');
    await world.sources.lifecycle.checkStranded(60_000);
    expect(await stateOf(name)).toBe('activating');
    world.ms += 60_000;
    await world.sources.lifecycle.checkStranded(60_000);
    expect(await stateOf(name)).toBe('publishing');
    await lost.lifecycle.settled();
  });

  test('the leader makes it again by itself', async () => {
    const name = await world.validated();
    world.issuer.setFault('discovery', { kind: 'delay', delayMs: 1_000 });
    await world.sources.lifecycle.activate(name, world.scope, BY);
    await world.restart();
    world.issuer.setFault('discovery', undefined);
    world.ms += 60_000;
    const changed = new Promise<void>((resolve) => {
      world.store.subscribe(({ topic }) => {
        if (topic === 'site_changed') resolve();
      });
    });
    const stop = world.plane.startJobs();
    await changed;
    await stop();
    expect(await stateOf(name)).toBe('publishing');
  });

  test('a revision that is retired while it is checked stays retired', async () => {
    const name = await world.validated();
    world.issuer.setFault('discovery', { kind: 'delay', delayMs: 300 });
    await world.sources.lifecycle.activate(name, world.scope, BY);
    await world.sources.lifecycle.retire(name, BY);
    await world.sources.lifecycle.settled();
    expect(await stateOf(name)).toBe('retired');
    expect(world.faults).toEqual([]);
  });

  test('capacity holds under concurrency, and a slot that is returned can be taken', async () => {
    await world.addSite('small', 3);
    const names = await Promise.all(
      Array.from({ length: 12 }, () => world.validated({ audience: 'small' }, 'small')),
    );
    const outcomes = await Promise.all(
      names.map((name) => refusalOf(world.sources.lifecycle.activate(name, world.scope, BY))),
    );
    expect(outcomes.toSorted()).toEqual([
      ...Array(3).fill('not refused'),
      ...Array(9).fill('source_capacity_exhausted'),
    ]);
    await world.sources.lifecycle.settled();
    const taken = names.filter((_, index) => outcomes[index] === 'not refused');
    const [first] = taken;
    const waiting = names.find((_, index) => outcomes[index] !== 'not refused');
    if (first === undefined || waiting === undefined) throw new Error('no source has a slot');
    await world.acknowledge(first);
    await world.sources.lifecycle.suspend(first, BY);
    expect(await refusalOf(world.activate(waiting))).toBe('source_capacity_exhausted');
    await world.sources.lifecycle.retire(first, BY);
    expect((await world.activate(waiting)).state).toBe('publishing');
  });

  test('an audience belongs to one site from its first activation on, for good', async () => {
    await world.addSite('other');
    const draft = await world.validated({}, 'other');
    const first = await world.active();
    expect(await refusalOf(world.activate(draft))).toBe('audience_taken');
    expect(await refusalOf(world.draft({}, 'other'))).toBe('audience_taken');
    const mine = await world.draft({ audience: 'mine' }, 'other');
    expect(
      await refusalOf(world.sources.drafts.editRevision(mine, { audience: 'proofgate-shop' }, 1, BY)),
    ).toBe('audience_taken');
    await world.sources.lifecycle.retire(first, BY);
    expect(await refusalOf(world.activate(draft))).toBe('audience_taken');
    expect(await stateOf(draft)).toBe('validated');
  });

  test('editing an active source makes a draft beside it, which replaces it without a second slot', async () => {
    await world.addSite('small', 1);
    const first = await world.active({ audience: 'small' }, 'small');
    const { view } = await world.sources.drafts.addRevision(first.sourceId, {}, BY);
    expect(view).toMatchObject({ revision: 2, state: 'draft', audience: 'small' });
    expect(await refusalOf(world.sources.drafts.addRevision(first.sourceId, {}, BY))).toBe(
      'source_revision_in_progress',
    );
    const second = { ...first, revision: 2 };
    await world.sources.lifecycle.validate(second, BY);
    expect((await world.activate(second)).state).toBe('publishing');
    expect(await stateOf(first)).toBe('active');
    await world.acknowledge(second);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['retired', 'active']);
  });

  test('one revision of a source is on its way at a time', async () => {
    const first = await world.publishing();
    await world.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await world.sources.lifecycle.validate(second, BY);
    expect(await refusalOf(world.sources.lifecycle.activate(second, world.scope, BY))).toBe(
      'source_revision_in_progress',
    );
    await world.acknowledge(first);
    await world.sources.lifecycle.suspend(first, BY);
    expect((await world.activate(second)).state).toBe('publishing');
    expect(await refusalOf(world.sources.lifecycle.resume(first, BY))).toBe('source_revision_in_progress');
  });

  test('suspend, resume and retire', async () => {
    const name = await world.active();
    expect(await world.sources.lifecycle.suspend(name, BY)).toMatchObject({ state: 'suspended' });
    expect(await refusalOf(world.sources.lifecycle.suspend(name, BY))).toBe('source_state_conflict');
    const changesBefore = (await world.changesOf()).length;
    expect(await world.sources.lifecycle.resume(name, BY)).toMatchObject({ state: 'publishing' });
    expect(await world.changesOf()).toHaveLength(changesBefore + 1);
    await world.acknowledge(name);
    expect(await world.sources.lifecycle.retire(name, BY)).toMatchObject({ state: 'retired' });
    for (const event of ['suspend', 'resume', 'retire'] as const) {
      expect(await refusalOf(world.sources.lifecycle[event](name, BY))).toBe('source_state_conflict');
    }
    expect(await refusalOf(world.sources.lifecycle.validate(name, BY))).toBe('source_state_conflict');
    expect(await refusalOf(world.sources.drafts.addRevision(name.sourceId, {}, BY))).toBe(
      'source_state_conflict',
    );
  });

  test('a source that is retired does not come back by a draft that was left beside it', async () => {
    const first = await world.active();
    await world.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await world.sources.lifecycle.validate(second, BY);
    await world.sources.lifecycle.retire(first, BY);
    expect(await refusalOf(world.sources.lifecycle.activate(second, world.scope, BY))).toBe(
      'source_state_conflict',
    );
    const { version } = await world.sources.drafts.revision(second);
    await world.sources.drafts.deleteRevision(second, version, BY);
    expect((await world.sources.drafts.get(first.sourceId)).revisions).toHaveLength(1);
  });

  test('keys of what is live are refreshed, and kept for all instances', async () => {
    const name = await world.active();
    world.ms += 400_000;
    const signer = makeSigner('RS256');
    world.issuer.extraKeys = [signer.jwk];
    const { liveKeySources } = await import('../../../src/control/sources/key-set-records.ts');
    const live = await liveKeySources(world.store);
    expect(live).toEqual([{ ...name, jwksUri: world.issuer.jwksUri }]);
    await world.cache.refreshDue(live);
    const stored = await world.read((tx) => tx.sources.keySet(name.sourceId, 1));
    expect(stored?.jwks).toContain(signer.kid);
    expect(stored?.fetchedAtMs).toBe(world.ms);
    await world.sources.lifecycle.suspend(name, BY);
    expect(await liveKeySources(world.store)).toEqual([]);
  });
});
