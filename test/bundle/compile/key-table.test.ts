/** Tests that expired keys leave memory, and that partitioned maps behave like one map. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ExpiryIndex, PartitionedMap } from '../../../src/bundle/compile/key-table.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { applied, compiled, deltaAfter, keyNamed } from '../../support/bundle/deltas.ts';
import {
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const { jwk } = newSigningKey().publicKey;

describe('keys that lapsed', () => {
  const lapsingAt = (keyId: string, seconds: number) =>
    keyNamed(keyId, 'billing', jwk, { expires_at: formatTime(seconds) });

  it('leave within a minute or so, and nothing else does', async () => {
    const first = await compiled(bundleContent(keys), keys.bundle);
    const keysPut = [lapsingAt('a', NOW_SECONDS + 10), lapsingAt('b', NOW_SECONDS + 200)];
    const snapshot = await applied(first, deltaAfter(first, { keys_put: keysPut }), keys.bundle);
    expect(snapshot.keys.forgetLapsed(NOW_SECONDS + 10, 100)).toBe(0);
    expect(snapshot.keys.forgetLapsed(NOW_SECONDS + 75, 100)).toBe(1);
    expect([snapshot.keys.get('a'), snapshot.keys.get('b')?.keyId]).toEqual([undefined, 'b']);
    expect([...snapshot.keys.keyIdsOf('billing')].sort()).toEqual(['b', 'dk_billing']);
    expect(snapshot.keys.forgetLapsed(NOW_SECONDS + 99_999, 100)).toBe(2);
    expect(snapshot.keys.size).toBe(1);
    expect(snapshot.keys.get('broker-1')?.kind).toBe('issuer_key');
  });

  it('stay when they were put again for longer', async () => {
    let snapshot = await compiled(bundleContent(keys), keys.bundle);
    for (const seconds of [10, 500]) {
      const put = deltaAfter(snapshot, { keys_put: [lapsingAt('a', NOW_SECONDS + seconds)] });
      snapshot = await applied(snapshot, put, keys.bundle);
    }
    expect(snapshot.keys.forgetLapsed(NOW_SECONDS + 300, 100)).toBe(0);
    expect(snapshot.keys.get('a')?.keyId).toBe('a');
  });

  it('are not reused by a load without them', async () => {
    const { compileBundle } = await import('../../../src/bundle/compile/compile.ts');
    const content = { ...bundleContent(keys), derived_keys: [lapsingAt('a', 1000), lapsingAt('b', 2000)] };
    const options = { file: 'bundle.jws', head: 'h', forgetBeforeSeconds: 2000 };
    const snapshot = await compileBundle(content, options);
    expect([snapshot.keys.get('a'), snapshot.keys.get('b')?.keyId]).toEqual([undefined, 'b']);
  });
});

it('the index takes each name once, none before its time, all after it', () => {
  const moment = fc.integer({ min: 0, max: 5000 });
  const name = fc.integer({ min: 0, max: 20 }).map(String);
  fc.assert(
    fc.property(fc.array(fc.tuple(name, moment, fc.boolean())), fc.array(moment), (changes, looks) => {
      const index = new ExpiryIndex();
      const model = new Map<string, number>();
      for (const [id, seconds, isPut] of changes) {
        const before = model.get(id);
        if (before !== undefined) index.remove(id, before);
        model.delete(id);
        if (!isPut) continue;
        index.add(id, seconds);
        model.set(id, seconds);
      }
      for (const nowSeconds of looks.sort((a, b) => a - b)) {
        for (const id of index.takeLapsed(nowSeconds, 3)) {
          expect(model.get(id)).toBeLessThan(nowSeconds);
          model.delete(id);
        }
      }
      for (const id of index.takeLapsed(99_999, 99)) expect(model.delete(id)).toBe(true);
      expect(model.size).toBe(0);
    }),
  );
});

it('a map in parts is a map', () => {
  const name = fc.string({ maxLength: 3 });
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.boolean(), fc.nat())), (changes) => {
      const [map, model] = [new PartitionedMap<number>(), new Map<string, number>()];
      for (const [key, isPut, value] of changes) {
        if (isPut) map.set(key, value);
        else expect(map.delete(key)).toBe(model.has(key));
        if (isPut) model.set(key, value);
        else model.delete(key);
        expect([map.size, map.get(key), map.has(key)]).toEqual([model.size, model.get(key), model.has(key)]);
      }
      for (const [key, value] of model) expect(map.get(key)).toBe(value);
    }),
  );
});
