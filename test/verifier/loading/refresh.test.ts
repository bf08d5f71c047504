/** Following Control: what is applied, kept, acknowledged and refused, and what happens when Control is away. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ResolvedDirectory } from '../../../src/bundle/format/local-directory.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { clientNamed, keyNamed } from '../../support/bundle/deltas.ts';
import type { FakeControl } from '../../support/fakes/control-distribution.ts';
import { NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { waitUntil } from '../../support/wait.ts';
import { newTestLoader } from './loader-fixture.ts';
import { keys, newControl, siteContent, startFollower } from './refresh-fixture.ts';

const { jwk } = newSigningKey().publicKey;
const newKey = (keyId: string) => keyNamed(keyId, 'billing', jwk);

async function following(more: Parameters<typeof startFollower>[0] | object = {}) {
  const control = await newControl();
  control.publishWhole(siteContent());
  const stateDirectory = await newDirectory();
  const follower = await startFollower({ stateDirectory, url: control.url, ...more });
  const reaches = (revision: number) =>
    waitUntil(() =>
      control.acknowledgements.some((ack) => ack.revision === revision && ack.outcome === 'accepted'),
    );
  await reaches(1);
  return { control, stateDirectory, reaches, ...follower };
}

describe('a verifier that follows Control', () => {
  it('takes the whole bundle, then deltas, links and statements, and acknowledges each', async () => {
    const { control, loader, reaches, events } = await following();
    control.publishDelta({ keys_put: [newKey('dk_1')], clients_put: [clientNamed('reporting')] });
    await reaches(2);
    expect(loader.snapshot?.keys.get('dk_1')).toMatchObject({ status: 'active' });
    control.publishLinked(siteContent());
    await reaches(3);
    control.publishDelta({ keys_removed: ['dk_1'] });
    await reaches(4);
    expect(loader.snapshot?.keys.get('dk_1')).toBeUndefined();
    control.freshen(NOW_SECONDS + 4);
    await waitUntil(() => loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + 4);
    expect(loader.position).toEqual(control.position);
    expect(events).toEqual([
      ['loaded', 1, 'control'],
      ['advanced', 2, 'delta'],
      ['advanced', 3, 'link'],
      ['advanced', 4, 'delta'],
      ['freshened', NOW_SECONDS + 4],
    ]);
    expect(control.acknowledgements.map(({ revision, outcome }) => [revision, outcome])).toEqual([
      [1, 'accepted'],
      [2, 'accepted'],
      [3, 'accepted'],
      [4, 'accepted'],
    ]);
  });

  it('says at each request which optional members of a bundle it knows', async () => {
    const { control } = await following();
    expect(control.knownMembers.length).toBeGreaterThan(2);
    expect(new Set(control.knownMembers)).toEqual(
      new Set(['accepted_proofs,blocked,enforcement,passport_header']),
    );
  });

  it('fetches a whole bundle when only that leads on, without the shards that it has', async () => {
    const { control, loader, reaches } = await following();
    control.publishWhole(siteContent(), true);
    await reaches(2);
    expect(control.filesSent).toEqual(['bundle.jws', 'bundle.jws', 'keys-0001.jsonl']);
    control.publishWhole(siteContent({ skew_seconds: 9 }), true);
    await reaches(3);
    expect(control.filesSent).toEqual(['bundle.jws', 'bundle.jws', 'keys-0001.jsonl', 'bundle.jws']);
    expect(loader.snapshot).toMatchObject({ skewSeconds: 9, revision: 3 });
    expect(loader.snapshot?.keys.get('dk_billing')?.kind).toBe('derived_key');
  });

  it('fetches a shard that it has when its bytes are no longer those', async () => {
    const { control, reaches, stateDirectory } = await following();
    control.publishWhole(siteContent(), true);
    await reaches(2);
    const [base = ''] = await readdir(join(stateDirectory, 'bases'));
    await writeFile(join(stateDirectory, 'bases', base, 'keys-0001.jsonl'), 'x');
    control.publishWhole(siteContent({ skew_seconds: 9 }), true);
    await reaches(3);
    expect(control.filesSent.filter((name) => name === 'keys-0001.jsonl')).toHaveLength(2);
  });

  it('starts from its state directory while Control is away, and goes on when it is back', async () => {
    const first = await following();
    first.control.publishDelta({ keys_put: [newKey('dk_1')] });
    await first.reaches(2);
    first.control.freshen(NOW_SECONDS + 3);
    await waitUntil(() => first.loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + 3);
    await first.stop();
    const { port } = first.control;
    await first.control.close();
    const again = await startFollower({
      stateDirectory: first.stateDirectory,
      url: `http://127.0.0.1:${port}`,
    });
    await waitUntil(() => again.refresher.status().problem !== undefined);
    expect(again.refresher.status().problem?.error.code).toBe('control_unreachable');
    expect(again.loader.snapshot).toMatchObject({ revision: 2, freshAsOfSeconds: NOW_SECONDS + 3 });
    expect(again.loader.snapshot?.keys.get('dk_1')?.kind).toBe('derived_key');
    first.control.publishDelta({ keys_removed: ['dk_1'] });
    await first.control.listen(port);
    await first.reaches(3);
    expect(again.loader.snapshot?.keys.get('dk_1')).toBeUndefined();
    expect(again.events).toEqual([
      ['loaded', 2, 'state'],
      ['failed', 'control_unreachable'],
      ['recovered'],
      ['freshnessIgnored', 'other_revision'],
      ['advanced', 3, 'delta'],
    ]);
  });

  it('accepts a whole bundle above its revision from a Control that was restored', async () => {
    const { control, loader, reaches, events } = await following();
    const backup = control.position;
    control.publishDelta({ keys_put: [newKey('dk_1')] });
    await reaches(2);
    control.restoreTo(backup);
    // Control meanwhile offers a lower revision, which is rejected.
    await waitUntil(() => control.acknowledgements.some(({ code }) => code === 'revision_lower'));
    expect(control.polls.at(-1)).toMatchObject({ revision: 2, base_revision: 1 });
    expect(loader.snapshot?.revision).toBe(2);
    control.skipTo(2);
    control.publishWhole(siteContent());
    await reaches(3);
    expect(loader.snapshot?.keys.get('dk_1')).toBeUndefined();
    expect(events.at(-1)).toEqual(['loaded', 3, 'control']);
  });

  it('replaces its base in the background when its steps have become many, and nothing waits for it', async () => {
    const { control, loader, reaches, stateDirectory, stop } = await following();
    const wide = Array.from({ length: 40 }, (_, index) => clientNamed(`c${index}`));
    control.publishDelta({ clients_put: wide });
    await reaches(2);
    control.publishLinked(siteContent({ clients: [...(siteContent().clients ?? []), ...wide] }));
    control.publishDelta({ keys_put: [newKey('dk_1')] });
    await reaches(4);
    const bases = join(stateDirectory, 'bases');
    await waitUntil(() => control.filesSent.length === 2);
    control.publishDelta({ keys_put: [newKey('dk_2')] });
    await reaches(5);
    await stop();
    const [base] = await readdir(bases);
    expect(base).toMatch(/^3-/);
    const again = await startFollower({ stateDirectory, url: control.url });
    expect(again.events[0]).toEqual(['loaded', 5, 'state']);
    expect(again.loader.position).toEqual(loader.position);
    expect(again.loader.snapshot?.keys.size).toBe(4);
  });

  it('keeps its base when a whole bundle of one of its revisions is of another chain', async () => {
    const { control, loader, reaches, stateDirectory } = await following();
    control.publishDelta({ keys_put: [newKey('dk_1')] });
    await reaches(2);
    const other = await newDirectory();
    await putBundle(other, { ...siteContent({ skew_seconds: 9 }), revision: 2 }, keys.bundle);
    await expect(loader.rebase(new ResolvedDirectory(other))).resolves.toBe(false);
    expect(await readdir(join(stateDirectory, 'bases'))).toEqual([expect.stringMatching(/^1-/)]);
  });

  it('has no base to replace before it has loaded one', async () => {
    const other = await newDirectory();
    await putBundle(other, { ...siteContent(), revision: 1 }, keys.bundle);
    const persisted = new PersistedBundle(await newDirectory());
    const { loader } = newTestLoader({ signer: keys.bundle, persisted });
    await expect(loader.rebase(new ResolvedDirectory(other))).resolves.toBe(false);
  });

  it('takes what is higher, its own directory or Control, and keeps both', async () => {
    const directory = await newDirectory();
    const control = await newControl();
    control.publishWhole(siteContent());
    const higher = await putBundle(directory, { ...siteContent(), revision: 7 }, keys.bundle);
    const stateDirectory = await newDirectory();
    const follower = await startFollower({ stateDirectory, url: control.url, directory });
    await waitUntil(() => control.acknowledgements.some(({ code }) => code === 'revision_lower'));
    expect(follower.loader.position).toEqual(higher);
    control.skipTo(7);
    control.publishWhole(siteContent());
    await waitUntil(() => follower.loader.snapshot?.revision === 8);
    await follower.loader.reload();
    expect(follower.loader.status().problem).toBeUndefined();
    await follower.stop();
    const again = await startFollower({ stateDirectory, url: control.url, directory });
    expect(again.loader.snapshot?.revision).toBe(8);
    expect(again.loader.status().problem).toBeUndefined();
  });

  it('keeps what its own directory brought, for a start without it', async () => {
    const directory = await newDirectory();
    const control = await newControl();
    const position = await putBundle(directory, { ...siteContent(), revision: 7 }, keys.bundle);
    const stateDirectory = await newDirectory();
    const first = await startFollower({ stateDirectory, url: control.url, directory });
    await first.stop();
    const again = await startFollower({ stateDirectory, url: control.url });
    expect(again.loader.position).toEqual(position);
  });
});

it('a base that is unsound is not taken for the one that is kept, nor fetched again', async () => {
  const { control, loader, reaches, stateDirectory, events } = await following();
  control.publishDelta({ clients_put: Array.from({ length: 40 }, (_, index) => clientNamed(`c${index}`)) });
  await reaches(2);
  control.publishLinked(siteContent({ routes: [] }));
  await reaches(3);
  await waitUntil(() => events.some(([event]) => event === 'failed'));
  expect(events.find(([event]) => event === 'failed')).toEqual(['failed', 'route_unknown']);
  for (const revision of [4, 5]) {
    control.publishDelta({});
    await reaches(revision);
  }
  expect(control.filesSent).toEqual(['bundle.jws', 'bundle.jws']);
  expect(loader.snapshot?.revision).toBe(5);
  const [base] = await readdir(join(stateDirectory, 'bases'));
  expect(base).toMatch(/^1-/);
});

it('a mark that cannot be read lets nothing be fetched, and says so', async () => {
  const control = await newControl();
  control.publishWhole(siteContent());
  const stateDirectory = await newDirectory();
  await writeFile(join(stateDirectory, 'high-water-mark.json'), '{');
  const { loader, events } = await startFollower({ stateDirectory, url: control.url });
  await waitUntil(() => events.some(([event]) => event === 'failed'));
  expect(events).toEqual([['failed', 'mark_corrupt']]);
  expect([loader.snapshot, control.filesSent]).toEqual([undefined, []]);
});

describe('what Control sends is refused', () => {
  it.each<[what: string, code: string, publish: (control: FakeControl) => void]>([
    [
      'a delta of a stranger',
      'signatures_insufficient',
      (control) => control.publishDelta({}, newSigningKey()),
    ],
    [
      'a delta for another site',
      'auth_site_mismatch',
      (control) => control.publishDelta({ auth_site: 'other' }),
    ],
    ['a fork', 'chain_broken', (control) => control.publishDelta({ previous_head: 'A'.repeat(43) })],
    ['a step too long', 'revision_step', (control) => control.publishDelta({ revision: 1_000_002 })],
    [
      'a key of no client',
      'client_unknown',
      (control) => control.publishDelta({ keys_put: [keyNamed('x', 'y', jwk)] }),
    ],
    [
      'an inconsistent bundle',
      'route_unknown',
      (control) => control.publishWhole(siteContent({ routes: [] })),
    ],
  ])('%s: %s', async (_what, code, publish) => {
    const { control, loader, reaches, events } = await following();
    const good = loader.snapshot;
    publish(control);
    await waitUntil(() => control.acknowledgements.some(({ outcome }) => outcome === 'refused'));
    expect(control.acknowledgements.find(({ outcome }) => outcome === 'refused')).toMatchObject({
      ...control.position,
      code,
    });
    expect(events).toContainEqual(['refused', code, 'control']);
    expect(loader.snapshot).toBe(good);
    expect(loader.status().problem?.error.code).toBeDefined();
    control.publishWhole(siteContent());
    await reaches(control.position.revision);
    expect(loader.status().problem).toBeUndefined();
  });

  it.each([
    ['half a character at its end', '\u{1f600}'.repeat(300)],
    ['half a character there in another place', `x${'\u{1f600}'.repeat(300)}`],
    ['U+0000 and a lone surrogate', 'x\0y\udc00z'],
  ])('and the text with %s is sent well-formed', async (_, text) => {
    const { control, reaches } = await following({
      acceptSnapshot: ({ revision }) => (revision === 1 ? undefined : text),
    });
    await reaches(1);
    control.publishWhole(siteContent());
    await waitUntil(() => control.acknowledgements.some(({ outcome }) => outcome === 'refused'));
    const { detail = '' } = control.acknowledgements.find(({ outcome }) => outcome === 'refused') ?? {};
    expect(detail).not.toMatch(/[\p{Cs}\p{Cc}]/u);
    expect(detail.length).toBeGreaterThan(10);
  });

  it('once, and not fetched again and again', async () => {
    const { control } = await following();
    control.publishWhole(siteContent({ routes: [] }));
    await waitUntil(() => control.acknowledgements.some(({ outcome }) => outcome === 'refused'));
    const { length } = control.polls;
    control.freshen(NOW_SECONDS + 1);
    await waitUntil(() => control.polls.length > length + 1);
    control.freshen(NOW_SECONDS + 2);
    await waitUntil(() => control.polls.length > length + 2);
    expect(control.filesSent).toEqual(['bundle.jws', 'bundle.jws']);
    expect(control.acknowledgements.filter(({ outcome }) => outcome === 'refused')).toHaveLength(1);
  });

  it('a statement by a stranger', async () => {
    const { control, loader, events } = await following();
    control.freshen(NOW_SECONDS + 2);
    await waitUntil(() => loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + 2);
    const statement = JSON.parse(control.freshness ?? '');
    const [signature] = statement.signatures;
    const text: string = signature.signature;
    signature.signature = `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
    control.sendFreshness(JSON.stringify(statement));
    await waitUntil(() => events.some(([event]) => event === 'freshnessRefused'));
    expect(events.at(-1)).toEqual(['freshnessRefused', 'signature_invalid']);
    expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS + 2);
  });
});

describe('what can go wrong on the way', () => {
  const answer = (more: object) =>
    JSON.stringify({ auth_site: 'shop-eu-1', revision: 9, head: 'A'.repeat(43), steps: [], ...more });
  const file = {
    name: 'bundle.jws',
    bytes: 10,
    sha256: 'A'.repeat(43),
    path: '/v1/targets/self/bundles/1/b',
  };
  const body = (text: string) => ({ kind: 'body', body: text }) as const;
  const files = (...files: object[]) =>
    body(answer({ whole: { revision: 9, head: 'A'.repeat(43), files, steps: [], required: true } }));
  const redirect = { kind: 'status', status: 302, headers: { location: 'http://127.0.0.1:1/' } } as const;
  const sent = { ...file, path: '/v1/targets/self/bundles/1/bundle.jws' };

  it.each<[what: string, code: string, fault: Parameters<FakeControl['failNext']>[1]]>([
    ['500', 'control_unavailable', { kind: 'status', status: 500 }],
    ['401', 'control_unauthorized', { kind: 'status', status: 401 }],
    ['404', 'control_status', { kind: 'status', status: 404 }],
    ['a redirect', 'control_status', redirect],
    ['429', 'control_throttled', { kind: 'status', status: 429, headers: { 'retry-after': '0' } }],
    ['no answer', 'control_unreachable', { kind: 'reset' }],
    ['no JSON', 'control_answer_invalid', body('{')],
    ['another shape', 'control_answer_invalid', body(answer({ x: 1 }))],
    ['another site', 'control_answer_invalid', body(answer({ auth_site: 'other' }))],
    ['no bundle among the files', 'control_answer_invalid', files({ ...file, name: 'keys-0001.jsonl' })],
    ['a file twice', 'control_answer_invalid', files(file, file)],
    [
      'a path elsewhere',
      'control_answer_invalid',
      files({ ...file, path: '/v1/targets/self/bundles/../../x' }),
    ],
    ['a file that is announced as too large', 'control_answer_too_large', files({ ...file, bytes: 2 ** 40 })],
    [
      'a shard that is announced as too large',
      'control_answer_too_large',
      files(file, { ...file, name: 'keys-0001.jsonl', bytes: 2 ** 40 }),
    ],
    [
      'more files than a bundle has',
      'control_answer_invalid',
      files(
        file,
        ...Array.from({ length: 101 }, (_, n) => ({
          ...file,
          name: `keys-${String(n + 1).padStart(4, '0')}.jsonl`,
        })),
      ),
    ],
    ['a missing file', 'control_status', files(file)],
    ['a file with other bytes', 'control_file_mismatch', files({ ...sent, bytes: 100_000 })],
    ['a file larger than announced', 'control_answer_too_large', files(sent)],
  ])('%s: %s', async (_what, code, fault) => {
    const { control, loader, reaches, stateDirectory, events } = await following();
    control.failNext('poll', fault);
    // Ends the poll that waits.
    control.freshen(NOW_SECONDS + 1);
    await waitUntil(() => events.some(([event]) => event === 'failed'));
    expect(events.filter(([event]) => event === 'failed')).toEqual([['failed', code]]);
    expect(loader.snapshot?.revision).toBe(1);
    control.publishDelta({ keys_put: [newKey('dk_1')] });
    await reaches(2);
    expect(events).toContainEqual(['recovered']);
    expect(await readdir(join(stateDirectory, 'bases'))).toHaveLength(1);
  });

  it('an acknowledgement whose answer is lost is sent again', async () => {
    const { control, reaches } = await following();
    control.failNext('ack', { kind: 'lose_answer' });
    control.publishDelta({});
    await reaches(2);
    await waitUntil(() => control.acknowledgements.filter(({ revision }) => revision === 2).length === 2);
  });

  it('a token is read anew for each request, and shown nowhere', async () => {
    let token = 'target-token';
    const { control, reaches, events } = await following({ readToken: async () => token });
    control.token = 'rotated-token';
    control.freshen(NOW_SECONDS + 1);
    await waitUntil(() => events.some(([event]) => event === 'failed'));
    token = 'rotated-token';
    control.publishDelta({});
    await reaches(2);
    expect(JSON.stringify(events)).not.toMatch(/(target|rotated)-token/);
  });

  it('a Control that answers at once, whatever it is asked, is not asked without pause', async () => {
    const { control } = await following();
    const same = { kind: 'body', body: answer({ revision: 1, head: control.position.head }) } as const;
    for (let i = 0; i < 200; i++) control.failNext('poll', same);
    control.freshen(NOW_SECONDS + 1);
    const before = control.faultsLeft;
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(before - control.faultsLeft).toBeLessThan(10);
  });
});

it('what is kept holds no secret, and times are those of the documents', async () => {
  const { control, reaches, stateDirectory, loader } = await following();
  control.publishDelta({ issued_at: formatTime(NOW_SECONDS + 2) });
  await reaches(2);
  expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS + 2);
  const texts: string[] = [];
  for (const entry of await readdir(stateDirectory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) texts.push(await readFile(join(entry.parentPath, entry.name), 'utf8'));
  }
  expect(texts.length).toBeGreaterThanOrEqual(3);
  expect(texts.join('')).not.toContain('target-token');
});
