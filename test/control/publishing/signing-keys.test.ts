/** Tests the signing keys of a site: sealed, one for each purpose, and two signers while one retires. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { DEFAULT_RETIRING_MS, SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { ControlWorld, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
beforeEach(async () => {
  world = await ControlWorld.open();
});
afterEach(() => world.close());

const rotate = () =>
  world.change((tx) => world.signingKeys.rotate(tx, SITE, 'bundle', { nowMs: world.clock.ms }));
const signerNames = async (keys = world.signingKeys) =>
  (await world.read((tx) => keys.signers(tx, SITE, 'bundle', world.clock.ms))).map(
    ({ publicKey }) => publicKey.thumbprint,
  );

it('a new site has one of each purpose, and shows public halves alone', async () => {
  const views = await world.read((tx) => world.signingKeys.ofSite(tx, SITE));
  expect(views.map(({ purpose, state }) => `${purpose} ${state}`).sort()).toEqual([
    'bundle active',
    'freshness active',
    'receipt active',
  ]);
  for (const { jwk } of views) expect(Object.keys(jwk).sort()).toEqual(['crv', 'kty', 'x']);
});

it('are sealed: another master key cannot load them, and a row cannot hold another key', async () => {
  const other = new SiteSigningKeys(MasterKeys.random());
  await expect(signerNames(other)).rejects.toMatchObject({ name: 'UnsealError' });
  const rows = await world.read((tx) => tx.signingKeys.ofSite(SITE));
  const [freshness, bundle] = [
    rows.find((row) => row.purpose === 'freshness'),
    rows.find((row) => row.purpose === 'bundle'),
  ];
  const sealed = freshness?.sealedPrivateKey ?? '';
  await world.change((tx) => tx.signingKeys.change(bundle?.id ?? '', { sealedPrivateKey: sealed }));
  await expect(signerNames()).rejects.toMatchObject({ name: 'UnsealError' });
});

it('rotation signs with both until the old one retires, then forgets its private half', async () => {
  const [old] = await signerNames();
  const { thumbprint: fresh } = await rotate();
  expect(await signerNames()).toEqual([fresh, old]);
  expect((await world.site()).wholeNeeded).toBe(1);
  world.clock.ms += DEFAULT_RETIRING_MS - 1;
  expect(await signerNames()).toEqual([fresh, old]);
  world.clock.ms += 1;
  expect(await signerNames()).toEqual([fresh]);
  const retired = await world.change((tx) => world.signingKeys.retireDue(tx, SITE, world.clock.ms));
  expect(retired).toBe(1);
  const rows = await world.read((tx) => tx.signingKeys.ofSite(SITE));
  expect(rows.find(({ thumbprint }) => thumbprint === old)).toMatchObject({
    state: 'retired',
    sealedPrivateKey: '',
  });
  expect(await signerNames()).toEqual([fresh]);
});

it('a retiring key can be ended sooner and loses its private half; a later end is rejected', async () => {
  const [old] = await signerNames();
  const rowOfOld = async () =>
    (await world.read((tx) => tx.signingKeys.ofSite(SITE))).find(({ thumbprint }) => thumbprint === old);
  const id = (await rowOfOld())?.id ?? '';
  const retire = (retiringMs: number) =>
    world.change((tx) => world.signingKeys.retire(tx, SITE, id, { nowMs: world.clock.ms, retiringMs }));
  const conflict = { code: 'signing_key_state_conflict' };
  await expect(retire(0)).rejects.toMatchObject(conflict);
  const { thumbprint: fresh } = await rotate();
  await expect(retire(DEFAULT_RETIRING_MS)).rejects.toMatchObject(conflict);
  await world.change((tx) => tx.hierarchy.advance(SITE, { wholeNeeded: 0 }));

  await retire(2000);
  world.clock.ms += 1999;
  expect(await signerNames()).toEqual([fresh, old]);
  expect((await world.site()).wholeNeeded).toBe(0);

  await retire(0);
  expect(await signerNames()).toEqual([fresh]);
  expect((await world.site()).wholeNeeded).toBe(1);
  expect(await rowOfOld()).toMatchObject({
    state: 'retired',
    sealedPrivateKey: '',
    retireAtMs: world.clock.ms,
  });
  await expect(retire(0)).rejects.toMatchObject(conflict);
});

it('many rotations in a row keep few signers', async () => {
  for (let round = 0; round < 8; round++) {
    world.clock.ms += 1000;
    await rotate();
  }
  const names = await signerNames();
  expect(names).toHaveLength(5);
  const active = (await world.read((tx) => world.signingKeys.ofSite(tx, SITE))).filter(
    ({ purpose, state }) => purpose === 'bundle' && state === 'active',
  );
  expect(active.map(({ thumbprint }) => thumbprint)).toEqual([names[0]]);
});
