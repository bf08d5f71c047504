/** Retires a source with all its revisions, on both databases. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import { BY, EnrollmentEnvironment, refusalOf } from '../enrollment/enrollment-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

describe.each(databaseKinds())('on $name', (database) => {
  let env: EnrollmentEnvironment;

  beforeAll(async () => {
    await database.start();
    const open = await database.fresh();
    env = await EnrollmentEnvironment.open((nowMs) => open({ nowMs }));
  });
  afterAll(async () => {
    await env.close();
    await database.stop();
  });

  const addRevision = async ({ sourceId }: RevisionName) => {
    const { view } = await env.sources.drafts.addRevision(sourceId, {}, BY);
    const name = { sourceId, revision: view.revision };
    await env.sources.lifecycle.validate(name, BY);
    return name;
  };
  const statesOf = async ({ sourceId }: RevisionName) =>
    (await env.sources.drafts.get(sourceId)).revisions.map(({ revision, state }) => [revision, state]);

  test('every revision is retired, the draft deleted, and the active revision last, with its keys', async () => {
    const first = await env.active({ on_retire: 'revoke' });
    const policy = await env.policy(first);
    const { derived_key: key } = await env.enroll(env.workload(policy));
    const second = await addRevision(first);
    await env.activate(second);
    await addRevision(first);
    const before = (await env.auditKinds()).length;
    const view = await env.sources.lifecycle.retireSource(first.sourceId, BY);
    expect(view.revisions).toMatchObject([
      { revision: 1, state: 'retired' },
      { revision: 2, state: 'retired' },
    ]);
    expect((await env.auditKinds()).slice(before)).toEqual([
      'source_revision.delete',
      'source_revision.retire',
      'source_revision.retire',
    ]);
    const [last] = await env.read((tx) => tx.audit.list({ reach: { kind: 'everything' }, limit: 1 }));
    expect(JSON.parse(last?.after ?? '{}')).toMatchObject({ revision: 1, revoked_keys: 1 });
    expect((await env.keys.key(key?.key_id ?? '')).status).toBe('revoked');
  });

  test('a suspended source is retired with what was to replace it', async () => {
    const first = await env.active();
    const second = await addRevision(first);
    await env.sources.lifecycle.suspend(first, BY);
    await env.activate(second);
    await env.sources.lifecycle.retireSource(first.sourceId, BY);
    expect(await statesOf(first)).toEqual([
      [1, 'retired'],
      [2, 'retired'],
    ]);
  });

  test('a source without a revision in use is not changed', async () => {
    const draft = await env.draft();
    expect(await refusalOf(env.sources.lifecycle.retireSource(draft.sourceId, BY))).toBe(
      'source_state_conflict',
    );
    expect(await statesOf(draft)).toEqual([[1, 'draft']]);
    const retired = await env.active({ display_name: 'retired' });
    await env.sources.lifecycle.retireSource(retired.sourceId, BY);
    expect(await refusalOf(env.sources.lifecycle.retireSource(retired.sourceId, BY))).toBe(
      'source_state_conflict',
    );
    expect(await refusalOf(env.sources.lifecycle.retireSource('tas_none', BY))).toBe('not_found');
  });
});
