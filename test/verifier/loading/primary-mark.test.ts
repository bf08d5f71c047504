/** A worker decides by a bundle only once the primary has accepted it. */
import { expect, it } from '@jest/globals';
import { FileMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { PrimaryMark } from '../../../src/verifier/loading/state/primary-mark.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';

const [HEAD, OTHER_HEAD] = ['A', 'E'].map((letter) => letter.repeat(43)) as [string, string];
const IMMEDIATELY_MS = 0;

async function newMark(waitMs?: number) {
  const file = { stateDirectory: await newDirectory(), authSite: 'shop' };
  return { primary: new FileMark(file), worker: new PrimaryMark(file, waitMs) };
}

it('waits until the primary has raised the mark', async () => {
  const { primary, worker } = await newMark();
  let isRaised = false;
  const waiting = worker.raise({ revision: 2, head: HEAD }).then(() => {
    isRaised = true;
  });
  await primary.raise({ revision: 1, head: HEAD });
  expect([await worker.position(), isRaised]).toEqual([{ revision: 1, head: HEAD }, false]);
  await primary.raise({ revision: 2, head: HEAD });
  await waiting;
  expect(await worker.position()).toEqual({ revision: 2, head: HEAD });
});

it('accepts what the primary has long passed', async () => {
  const { primary, worker } = await newMark(IMMEDIATELY_MS);
  await primary.raise({ revision: 3, head: HEAD });
  await expect(worker.raise({ revision: 2, head: OTHER_HEAD })).resolves.toBeUndefined();
});

it.each([
  ['nothing', undefined],
  ['an older revision', { revision: 1, head: HEAD }],
  ['other content of this revision', { revision: 2, head: OTHER_HEAD }],
])('gives up where the primary has accepted %s', async (_, position) => {
  const { primary, worker } = await newMark(IMMEDIATELY_MS);
  if (position !== undefined) await primary.raise(position);
  await expect(worker.raise({ revision: 2, head: HEAD })).rejects.toMatchObject({ code: 'mark_unavailable' });
});

it('does not use what was found before there was a mark once the primary is further, and then takes the next', async () => {
  const { primary, worker } = await newMark();
  expect(await worker.position()).toBeUndefined();
  const waiting = worker.raise({ revision: 2, head: HEAD });
  await primary.raise({ revision: 3, head: HEAD });
  await expect(waiting).rejects.toMatchObject({ code: 'mark_unavailable' });
  await worker.raise({ revision: 3, head: HEAD });
  await primary.raise({ revision: 5, head: HEAD });
  await worker.raise({ revision: 4, head: HEAD });
});
