/** Tests scripted Sentinels: which of them the verifier believes, and what it reports when it believes none. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Primaries } from '../../../src/verifier/redis/primaries.ts';
import { type RedisSpeaker, SILENCE, type SpokenReply } from '../../support/fakes/redis-speaker.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { RedisErrorReply } from '../../support/harness/redis-reply.ts';
import { waitUntil } from '../../support/wait.ts';
import { primaryOf, TestPrimaries } from './primaries.ts';

const NAME = 'replay';
/** Sentinels are asked at least this often, whatever the interval of looks. */
const LOOK_MS = 1_000;
const servers = new TestPrimaries();
afterEach(() => servers.closeAll());

interface View {
  readonly primary: RedisSpeaker;
  readonly epoch?: number;
  readonly replicas?: number;
}

/** As `SENTINEL MASTER` and `SENTINEL REPLICAS` answer. */
function viewing({ epoch = 1, primary, replicas = 1 }: View) {
  return ([command, word, name]: readonly string[]): SpokenReply => {
    if (command !== 'SENTINEL' || name !== NAME)
      return new RedisErrorReply('ERR No such master with that name');
    if (word === 'MASTER') {
      return ['name', NAME, 'ip', '127.0.0.1', 'port', `${primary.port}`, 'config-epoch', `${epoch}`];
    }
    return Array.from({ length: replicas }, () => ['slave-priority', '100']);
  };
}

const labelOf = ({ port }: { readonly port: number }) => `127.0.0.1:${port}`;
const newPrimary = () => servers.speaker(primaryOf('sentinel'));

function open(sentinels: readonly { readonly port: number }[], name = NAME): Primaries {
  const addresses = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
  return servers.open({ kind: 'sentinel', sentinels: addresses, primaryName: name });
}

async function untilServing(primaries: Primaries, primary: RedisSpeaker): Promise<void> {
  await waitUntil(() => {
    const link = primaries.linkOf(0);
    return link?.label === labelOf(primary) && link.isServing;
  });
}

describe('the primary that Sentinels name', () => {
  it('is the only link, for the only shard', async () => {
    const primary = await newPrimary();
    const sentinel = await servers.speaker(viewing({ primary }));
    const primaries = open([sentinel]);
    expect([primaries.linkOf(0), primaries.links(), primaries.tags]).toEqual([undefined, [], ['0']]);
    expect(primaries.problem()).toContain(NAME);
    await untilServing(primaries, primary);
    const link = primaries.linkOf(0);
    expect(primaries.links()).toEqual([link]);
    expect(primaries.links().map((one) => primaries.shardsOf(one))).toEqual([[0]]);
    expect(primaries.problem()).toBeUndefined();
    expect(link?.fenceMarginSeconds).toBe(15);
    expect(servers.prepared).toEqual([labelOf(primary)]);
  });

  it('is named by the Sentinel that knows of the latest failover, in whichever order they answer', async () => {
    const [old, latest] = [await newPrimary(), await newPrimary()];
    const views = [
      viewing({ primary: old, epoch: 4 }),
      viewing({ primary: latest, epoch: 5 }),
      viewing({ primary: old, epoch: 4 }),
    ];
    const sentinels = await Promise.all(views.map((view) => servers.speaker(view)));
    await untilServing(open(sentinels), latest);
    await untilServing(open([...sentinels].reverse()), latest);
  });

  it('is found though other Sentinels are away, hang, or know nothing', async () => {
    const primary = await newPrimary();
    const hanging = await servers.speaker(() => SILENCE);
    const ignorant = await servers.speaker(() => new RedisErrorReply('ERR No such master with that name'));
    const knowing = await servers.speaker(viewing({ primary }));
    await untilServing(open([{ port: await freePort() }, hanging, ignorant, knowing]), primary);
  });

  it('is another one after a failover, and the old link is closed', async () => {
    const [before, after] = [await newPrimary(), await newPrimary()];
    const sentinel = await servers.speaker(viewing({ primary: before, epoch: 1 }));
    const primaries = open([sentinel]);
    await untilServing(primaries, before);
    const [old] = primaries.links();
    sentinel.spoken = viewing({ primary: after, epoch: 2 });
    if (old !== undefined) primaries.suspect(old);
    await untilServing(primaries, after);
    expect(primaries.links()).toHaveLength(1);
    await waitUntil(() => before.connections === 0);
    expect(old?.isServing).toBe(false);
  });

  it('is looked for again without being asked to', async () => {
    const [before, after] = [await newPrimary(), await newPrimary()];
    const sentinel = await servers.speaker(viewing({ primary: before, epoch: 1 }));
    const primaries = open([sentinel]);
    await untilServing(primaries, before);
    sentinel.spoken = viewing({ primary: after, epoch: 2 });
    await untilServing(primaries, after);
  });
});

describe('an older view', () => {
  it('is not believed while the primary of the later one serves', async () => {
    const [old, latest] = [await newPrimary(), await newPrimary()];
    const sentinel = await servers.speaker(viewing({ primary: latest, epoch: 5 }));
    const primaries = open([sentinel]);
    await untilServing(primaries, latest);
    sentinel.spoken = viewing({ primary: old, epoch: 4 });
    const asked = sentinel.countOf('SENTINEL', 'MASTER');
    const [link] = primaries.links();
    if (link !== undefined) primaries.suspect(link);
    await waitUntil(() => sentinel.countOf('SENTINEL', 'MASTER') > asked);
    await sleep(50);
    expect(primaries.links()).toEqual([link]);
    expect([link?.isServing, old.connections]).toEqual([true, 0]);
  });

  it('is better than nothing when that one serves no more', async () => {
    const [old, latest] = [await newPrimary(), await newPrimary()];
    const sentinel = await servers.speaker(viewing({ primary: latest, epoch: 5 }));
    const primaries = open([sentinel]);
    await untilServing(primaries, latest);
    await latest.stop();
    sentinel.spoken = viewing({ primary: old, epoch: 4 });
    await untilServing(primaries, old);
  });
});

describe('replicas', () => {
  it('that are more than before have the primary looked at again, before it serves on', async () => {
    const primary = await newPrimary();
    const sentinel = await servers.speaker(viewing({ primary, replicas: 1 }));
    const primaries = open([sentinel]);
    await untilServing(primaries, primary);
    const [link] = primaries.links();
    sentinel.spoken = viewing({ primary, replicas: 2 });
    if (link !== undefined) primaries.suspect(link);
    // It writes with one replica, and requires both from now on.
    await waitUntil(
      () => link?.isServing === false && link.problem?.includes('min-replicas-to-write') === true,
    );
    expect(primaries.links()).toEqual([link]);
  });

  it('that are as many or fewer change nothing', async () => {
    const primary = await newPrimary();
    const sentinel = await servers.speaker(viewing({ primary, replicas: 1 }));
    const primaries = open([sentinel]);
    await untilServing(primaries, primary);
    const [link] = primaries.links();
    for (const replicas of [1, 0]) {
      sentinel.spoken = viewing({ primary, replicas });
      const asked = sentinel.countOf('SENTINEL', 'REPLICAS');
      if (link !== undefined) primaries.suspect(link);
      await waitUntil(() => sentinel.countOf('SENTINEL', 'REPLICAS') > asked);
      await sleep(50);
    }
    expect(primary.countOf('INFO')).toBe(1);
    expect(link?.isServing).toBe(true);
  });
});

describe('while no Sentinel names a primary', () => {
  const problemOf = async (sentinels: readonly { readonly port: number }[], events: string) => {
    const primaries = open(sentinels);
    await waitUntil(() => primaries.problem()?.includes(events) === true);
    expect(primaries.problem()).toContain(NAME);
    expect(primaries.linkOf(0)).toBeUndefined();
    return primaries.problem();
  };

  it('it is reported that one is away, with its address and the code of the system', async () => {
    const port = await freePort();
    expect(await problemOf([{ port }], '(ECONNREFUSED)')).toContain(labelOf({ port }));
  });

  it('it is reported that one does not answer', async () => {
    const hanging = await servers.speaker(() => SILENCE);
    await problemOf([hanging], labelOf(hanging));
  });

  it('it is reported that one refuses, with the code', async () => {
    const refusing = await servers.speaker(() => new RedisErrorReply('NOPERM no permissions'));
    expect(await problemOf([refusing], '(NOPERM)')).toContain(labelOf(refusing));
  });

  it('it is reported that one is no Sentinel, or knows no such name: differently from that one does not answer', async () => {
    const ignorant = await servers.speaker(() => new RedisErrorReply('ERR No such master with that name'));
    const hanging = await servers.speaker(() => SILENCE);
    const lines = [
      await problemOf([ignorant], labelOf(ignorant)),
      await problemOf([hanging], labelOf(hanging)),
    ];
    const [first, second] = lines.map((line) => line?.replace(/127\.0\.0\.1:\d+/, ''));
    expect(first).not.toBe(second);
  });

  it('one that has answered since is not reported', async () => {
    const sentinel = await servers.speaker(() => new RedisErrorReply('NOPERM no permissions'));
    const primaries = open([sentinel]);
    await waitUntil(() => primaries.problem()?.includes('(NOPERM)') === true);
    sentinel.spoken = () => ['nothing'];
    await waitUntil(() => primaries.problem()?.includes('(NOPERM)') === false);
    expect(primaries.problem()).toContain(NAME);
  });

  it('it is found as soon as one can be reached', async () => {
    const primary = await newPrimary();
    const port = await freePort();
    const primaries = open([{ port }]);
    await waitUntil(() => primaries.problem()?.includes('(ECONNREFUSED)') === true);
    await servers.speaker(viewing({ primary }), port);
    await untilServing(primaries, primary);
  });
});

it('asks no more once it is closed, and leaves no connection', async () => {
  const primary = await newPrimary();
  const sentinel = await servers.speaker(viewing({ primary }));
  const primaries = open([sentinel]);
  await untilServing(primaries, primary);
  await primaries.close();
  await waitUntil(() => sentinel.connections + primary.connections === 0);
  const asked = sentinel.asked.length;
  await sleep(LOOK_MS + 200);
  expect(sentinel.asked.length).toBe(asked);
});
