import { describe, expect, it } from '@jest/globals';
import {
  askClusterView,
  bestView,
  CLUSTER_TAGS,
  type ClusterView,
  type ShardMap,
} from '../../../src/verifier/redis/cluster-view.ts';

const ASKED = { host: '10.0.0.1', port: 6379 };
const INFO = 'cluster_state:ok\r\ncluster_current_epoch:12\r\n';
const SLOTS = [[0, 16_383, ['10.0.0.2', 6380, 'id']]];

const answering =
  (info: unknown, slots: unknown) =>
  async (command: 'CLUSTER', word: 'INFO' | 'SLOTS'): Promise<unknown> =>
    ({ INFO: info, SLOTS: slots })[command === 'CLUSTER' ? word : 'INFO'];

describe('what a node knows of its Cluster', () => {
  it('is its epoch, whether it works, and who has which shard', async () => {
    expect(await askClusterView(answering(INFO, SLOTS), ASKED)).toEqual({
      currentEpoch: 12,
      isOk: true,
      shards: CLUSTER_TAGS.map(() => ({ host: '10.0.0.2', port: 6380 })),
    });
  });

  it.each(['fail', 'okay', ''])('works only where it says ok: %j', async (state) => {
    const info = `cluster_state:${state}\r\ncluster_current_epoch:12\r\n`;
    expect(await askClusterView(answering(info, SLOTS), ASKED)).toMatchObject({ isOk: false });
  });

  it.each<[string, unknown, unknown]>([
    ['no INFO', null, SLOTS],
    ['no epoch', 'cluster_state:ok\r\n', SLOTS],
    ['an epoch that is no number', 'cluster_state:ok\r\ncluster_current_epoch:x\r\n', SLOTS],
    ['no slots', INFO, 'OK'],
  ])('is nothing with %s', async (_what, info, slots) => {
    expect(await askClusterView(answering(info, slots), ASKED)).toBeUndefined();
  });

  it('is not known when the node does not answer', async () => {
    const silent = new Error('Command timed out');
    await expect(askClusterView(() => Promise.reject(silent), ASKED)).rejects.toBe(silent);
  });
});

describe('of several views', () => {
  const view = (name: string, currentEpoch: number, isOk: boolean): ClusterView => {
    const shards: ShardMap = [{ host: name, port: 1 }];
    return { currentEpoch, isOk, shards };
  };
  const cutOff = view('cut off', 9, false);
  const older = view('older', 3, true);
  const newer = view('newer', 4, true);
  const alsoNewer = view('also newer', 4, true);

  it.each([
    ['a node that works before one that does not', [cutOff, older], older],
    ['whichever comes first', [older, cutOff], older],
    ['the latest epoch', [older, newer], newer],
    ['whichever of them comes first', [newer, older], newer],
    ['the first of equals', [newer, alsoNewer], newer],
    ['the only one', [undefined, cutOff, undefined], cutOff],
    ['the latest of those that do not work', [view('cut off', 8, false), cutOff], cutOff],
  ])('%s is believed', (_what, views, best) => {
    expect(bestView(views)).toBe(best);
  });

  it('none is believed where there is none', () => {
    expect([bestView([]), bestView([undefined])]).toEqual([undefined, undefined]);
  });
});
