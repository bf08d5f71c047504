/** Each trust domain has one source; a change, and only a change, raises the generation. */
import { expect, test } from '@jest/globals';
import { BundleStore } from '../../src/spiffe/bundles/bundle-store.ts';
import { SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';

const shop = SpiffeAuthority.create('shop.example');
const partner = SpiffeAuthority.create('partner.example');

test('a bundle is found by its trust domain alone', () => {
  const store = new BundleStore();
  store.addSource()([shop.bundle, partner.bundle]);
  expect(store.bundleOf('shop.example')?.x509Authorities).toHaveLength(1);
  expect(store.bundleOf('other.example')).toBeUndefined();
});

test('a source that claims a trust domain is its only one, even without a bundle', () => {
  const store = new BundleStore();
  const workloadApi = store.addSource();
  const file = store.addSource(['partner.example']);
  workloadApi([shop.bundle, partner.bundle]);
  expect(store.bundleOf('partner.example')).toBeUndefined();
  file([partner.bundle]);
  expect(store.bundleOf('partner.example')).toBeDefined();
  workloadApi([]);
  expect(store.bundleOf('shop.example')).toBeUndefined();
  expect(store.bundleOf('partner.example')).toBeDefined();
});

test('two sources cannot claim one trust domain', () => {
  const store = new BundleStore();
  store.addSource(['shop.example']);
  expect(() => store.addSource(['shop.example'])).toThrow('two sources claim trust domain shop.example');
});

test('only other content raises the generation and calls listeners', () => {
  const store = new BundleStore();
  const update = store.addSource();
  const generations: number[] = [];
  const stop = store.onChange(() => generations.push(store.generation));
  update([shop.bundle]);
  update([shop.bundle]);
  update([{ ...shop.bundle, jwtAuthorities: [] }]);
  update([{ ...shop.bundle, x509Authorities: partner.bundle.x509Authorities, jwtAuthorities: [] }]);
  stop();
  update([]);
  expect(generations).toEqual([1, 2, 3]);
  expect(store.generation).toBe(4);
});
