/** Tests a hostile Control, or an impostor, that tries to keep a verifier busy. It has no signing key. */
import { describe, expect, it } from '@jest/globals';
import { hasAtMostParts } from '../../../src/verifier/loading/refresh/control-connection.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { keyNamed } from '../../support/bundle/deltas.ts';
import { NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { waitUntil } from '../../support/wait.ts';
import { newControl, siteContent, startFollower } from './refresh-fixture.ts';

async function following() {
  const control = await newControl();
  control.publishWhole(siteContent());
  const follower = await startFollower({ stateDirectory: await newDirectory(), url: control.url });
  await waitUntil(() => control.acknowledgements.some(({ revision }) => revision === 1));
  return { control, ...follower };
}

describe('answers of Control', () => {
  it('that bring nothing but other statements are not asked for without a pause', async () => {
    const { control, loader } = await following();
    const { revision, head } = control.position ?? { revision: 0, head: '' };
    const junk = 16;
    const startedMs = performance.now();
    for (let number = 0; number < junk; number++) {
      const answer = {
        auth_site: loader.snapshot?.authSite,
        revision,
        head,
        steps: [],
        freshness: `{"${number}":1}`,
      };
      control.failNext('poll', { kind: 'body', body: JSON.stringify(answer), etag: `"${number}"` });
    }
    // Ends the poll that waits.
    control.freshen(NOW_SECONDS + 1);
    await waitUntil(() => control.faultsLeft === 0);
    // The first eight may follow at once; between the others there is a quarter of a second.
    expect(performance.now() - startedMs).toBeGreaterThan((junk - 10) * 200);
    control.publishDelta({ keys_removed: [] });
    await waitUntil(() => loader.position?.revision === 2);
  });

  it('of many parts are not parsed, however large they are allowed to be', async () => {
    const { control, loader, refresher } = await following();
    const half = 24 * 1024 * 1024;
    control.failNext('poll', { kind: 'body', body: Buffer.alloc(half * 2, '[').fill(']', half) });
    control.publishDelta({ keys_removed: [] });
    await waitUntil(() => refresher.status().problem?.error.code === 'control_answer_invalid');
    await waitUntil(() => loader.position?.revision === 2);
  });
});

describe('shards of a whole bundle', () => {
  const inShards = () =>
    siteContent({ derived_keys: [keyNamed('dk_1', 'billing', newSigningKey().publicKey.jwk)] });

  it('are fetched when a pinned key signed their names', async () => {
    const control = await newControl();
    control.publishWhole(inShards(), true);
    const { loader } = await startFollower({ stateDirectory: await newDirectory(), url: control.url });
    await waitUntil(() => loader.position?.revision === 1);
    expect(control.filesSent).toEqual(['bundle.jws', 'keys-0001.jsonl']);
  });

  it('are not even asked for otherwise', async () => {
    const control = await newControl();
    control.publishWhole(inShards(), true);
    const stranger = { keys: [newSigningKey().publicKey], threshold: 1 };
    const { loader } = await startFollower({
      stateDirectory: await newDirectory(),
      url: control.url,
      bundleSigners: stranger,
    });
    await waitUntil(() => control.acknowledgements.some(({ outcome }) => outcome === 'refused'));
    expect(control.acknowledgements.at(-1)).toMatchObject({ code: 'signatures_insufficient' });
    expect(new Set(control.filesSent)).toEqual(new Set(['bundle.jws']));
    expect(loader.snapshot).toBeUndefined();
  });
});

describe('the parts of a JSON text', () => {
  it.each([
    ['{}', 1],
    ['[1,2,3]', 3],
    ['[[],{"a":[]}]', 5],
    ['"[,{"', 0],
    [String.raw`["\"[,{", "\\", "[\\\"{"]`, 3],
    ['"[{,', 0],
    ['', 0],
  ])('%s has %d', (text, parts) => {
    const json = Buffer.from(text);
    expect(hasAtMostParts(json, parts)).toBe(true);
    if (parts > 0) expect(hasAtMostParts(json, parts - 1)).toBe(false);
  });
});
