import { describe, expect, it } from '@jest/globals';
import {
  askClusterView,
  bestView,
  CLUSTER_TAGS,
  type ClusterView,
  parseClusterSlots,
  slotOfTag,
} from '../../../src/verifier/redis/cluster-view.ts';

const ASKED = { host: 'seed.example', port: 7000 };

describe('slots of a Cluster', () => {
  it('are reckoned as Redis does', () => {
    // The check value of CRC-16/XMODEM is 0x31c3; the others are answers of CLUSTER KEYSLOT.
    expect(slotOfTag('123456789')).toBe(0x31c3);
    expect(slotOfTag('foo')).toBe(12_182);
    expect(slotOfTag('')).toBe(0);
  });

  it('are spread evenly over 64 tags, always the same ones', () => {
    expect(CLUSTER_TAGS.map((tag) => Math.floor(slotOfTag(tag) / 256))).toEqual([...CLUSTER_TAGS.keys()]);
    expect(CLUSTER_TAGS.slice(0, 4)).toEqual(FIRST_TAGS);
  });
});

/** Another choice would lose every record at an upgrade. */
const FIRST_TAGS = ['10', '18', '113', '342'];

describe('the answer to CLUSTER SLOTS', () => {
  it('says which primary has which of the shards', () => {
    const map = parseClusterSlots(
      [
        [0, 8191, ['10.0.0.1', 7001, 'id-1', []], ['10.0.0.9', 7009, 'id-9', []]],
        [8192, 12_287, [null, 7002, 'id-2', []]],
        [12_288, 16_127, ['', 7003, 'id-3', []]],
        [16_128, 16_383, ['?', 7004, 'id-4', []]],
      ],
      ASKED,
    );
    expect(map?.[0]).toEqual({ host: '10.0.0.1', port: 7001 });
    expect(map?.[31]).toEqual({ host: '10.0.0.1', port: 7001 });
    expect(map?.[32]).toEqual({ host: 'seed.example', port: 7002 });
    expect(map?.[62]).toEqual({ host: 'seed.example', port: 7003 });
    expect(map?.[63]).toBeUndefined();
  });

  it('goes by the first and the last slot of a range, which are in it', () => {
    const slots = [0, 63].map((shard) => slotOfTag(CLUSTER_TAGS[shard] ?? ''));
    for (const [at, slot] of slots.entries()) {
      const shard = at === 0 ? 0 : 63;
      const of = (first: number, last: number) =>
        parseClusterSlots([[first, last, ['10.0.0.1', 7001]]], ASKED)?.[shard];
      expect(of(slot, slot)).toEqual({ host: '10.0.0.1', port: 7001 });
      expect([of(slot + 1, 20_000), of(-1, slot - 1)]).toEqual([undefined, undefined]);
    }
  });

  it('takes every port, and no host that is no name', () => {
    const of = (...node: unknown[]) => parseClusterSlots([[0, 16_383, node]], ASKED)?.[0];
    expect([of('10.0.0.1', 1), of('10.0.0.1', 65_535)]).toEqual([
      { host: '10.0.0.1', port: 1 },
      { host: '10.0.0.1', port: 65_535 },
    ]);
    expect([of(7, 7001), of(undefined, 7001), of(['10.0.0.1'], 7001)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(parseClusterSlots([[0, 16_383, '10.0.0.1:7001']], ASKED)?.[0]).toBeUndefined();
  });

  it('leaves out slots without a primary', () => {
    expect(parseClusterSlots([], ASKED)).toEqual(CLUSTER_TAGS.map(() => undefined));
  });

  it.each([
    ['text'],
    [null],
    [[1]],
    [[['0', '1', []]]],
    [[[0]]],
    [[['0', 16_383, []]]],
    [[[0, '16383', []]]],
  ])('is none: %j', (reply) => {
    expect(parseClusterSlots(reply, ASKED)).toBeUndefined();
  });

  it('takes no port that is none', () => {
    for (const port of [0, 65_536, 1.5, '7000', null]) {
      expect(parseClusterSlots([[0, 16_383, ['10.0.0.1', port]]], ASKED)?.[0]).toBeUndefined();
    }
  });
});

describe('the view to believe', () => {
  const view = (currentEpoch: number, isOk: boolean): ClusterView => ({ currentEpoch, isOk, shards: [] });

  it('is of the latest epoch, of those that find the Cluster working', () => {
    const [old, newer, broken] = [view(3, true), view(5, true), view(9, false)];
    expect(bestView([undefined, old, broken, newer])).toBe(newer);
    expect(bestView([broken, view(2, false)])).toBe(broken);
    expect(bestView([view(5, true), newer])?.currentEpoch).toBe(5);
    expect(bestView([undefined])).toBeUndefined();
  });

  it('is none where the answers are none', async () => {
    const ask = (info: unknown) => async (_: 'CLUSTER', word: 'INFO' | 'SLOTS') =>
      word === 'INFO' ? info : [];
    expect(await askClusterView(ask('OK'), ASKED)).toBeUndefined();
    const info = 'cluster_state:ok\r\ncluster_current_epoch:7\r\n';
    expect(await askClusterView(ask(info), ASKED)).toMatchObject({ isOk: true, currentEpoch: 7 });
  });
});
