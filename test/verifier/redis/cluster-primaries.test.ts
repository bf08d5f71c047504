/** Tests scripted Cluster nodes: which of them the verifier asks and believes, and what follows for the links. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { CLUSTER_TAGS } from '../../../src/verifier/redis/cluster-view.ts';
import type { RedisLink } from '../../../src/verifier/redis/link.ts';
import type { Primaries } from '../../../src/verifier/redis/primaries.ts';
import { infoText, type RedisSpeaker, SILENCE, type SpokenReply } from '../../support/fakes/redis-speaker.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { RedisErrorReply } from '../../support/harness/redis-reply.ts';
import { waitUntil } from '../../support/wait.ts';
import { primaryOf, TestPrimaries } from './primaries.ts';

const servers = new TestPrimaries();
afterEach(() => servers.closeAll());

const LAST_SLOT = 16_383;
const MIDDLE = 8_192;
const FIRST_HALF = CLUSTER_TAGS.map((_, shard) => shard).filter((shard) => shard < 32);
const SECOND_HALF = CLUSTER_TAGS.map((_, shard) => shard).filter((shard) => shard >= 32);

type Node = { readonly port: number };
type Range = readonly [first: number, last: number, node: Node];

interface View {
  readonly slots: readonly Range[];
  readonly epoch?: number;
  readonly state?: string;
}

/** A primary that also reports the slot owners. */
function nodeSaying({ epoch = 1, slots, state = 'ok' }: View) {
  return primaryOf('cluster', ([command, word]): SpokenReply => {
    if (command !== 'CLUSTER') return new RedisErrorReply('ERR unknown command');
    if (word === 'INFO') return infoText({ cluster_state: state, cluster_current_epoch: epoch });
    return slots.map(([first, last, { port }]) => [first, last, ['127.0.0.1', port, `id-${port}`]]);
  });
}

const speaking = () => servers.speaker(() => null);
const labelOf = ({ port }: Node) => `127.0.0.1:${port}`;
const halves = (first: Node, second: Node): readonly Range[] => [
  [0, MIDDLE - 1, first],
  [MIDDLE, LAST_SLOT, second],
];

function say(view: View, ...nodes: readonly RedisSpeaker[]): void {
  for (const node of nodes) node.spoken = nodeSaying(view);
}

function open(...seeds: readonly Node[]): Primaries {
  return servers.open({ kind: 'cluster', seeds: seeds.map(({ port }) => ({ host: '127.0.0.1', port })) });
}

/** Labels of those that serve, by shard. */
const servingLabels = (primaries: Primaries) =>
  CLUSTER_TAGS.map((_, shard) => {
    const link = primaries.linkOf(shard);
    return link?.isServing === true ? link.label : undefined;
  });

const untilServed = (primaries: Primaries, expected: (shard: number) => Node | undefined) =>
  waitUntil(() =>
    servingLabels(primaries).every((label, shard) => {
      const node = expected(shard);
      return label === (node && labelOf(node));
    }),
  );

/** Two nodes with half of the slots each, served. */
async function openHalves() {
  const [first, second] = [await speaking(), await speaking()];
  say({ slots: halves(first, second) }, first, second);
  const primaries = open(first);
  await untilServed(primaries, (shard) => (shard < 32 ? first : second));
  const links = [primaries.linkOf(0), primaries.linkOf(63)] as readonly (RedisLink | undefined)[];
  return { first, second, primaries, links };
}

describe('the primaries of a Cluster', () => {
  it('are found through one of them, each with the shards of its slots', async () => {
    const { first, links, primaries, second } = await openHalves();
    expect(
      primaries
        .links()
        .map(({ label }) => label)
        .sort(),
    ).toEqual([labelOf(first), labelOf(second)].sort());
    expect(links.map((link) => link && primaries.shardsOf(link))).toEqual([FIRST_HALF, SECOND_HALF]);
    expect(primaries.problem()).toBeUndefined();
    expect(links[0]?.fenceMarginSeconds).toBe(16);
    expect(servers.prepared.sort()).toEqual([labelOf(first), labelOf(second)].sort());
  });

  it('are found though other seeds are away, hang, or are no Cluster', async () => {
    const node = await speaking();
    say({ slots: [[0, LAST_SLOT, node]] }, node);
    const hanging = await servers.speaker(() => SILENCE);
    const alone = await servers.speaker(
      () => new RedisErrorReply('ERR This instance has cluster support disabled'),
    );
    await untilServed(open({ port: await freePort() }, hanging, alone, node), () => node);
  });

  it('are those of the latest epoch that a working node tells of', async () => {
    const [old, latest, cutOff] = [await speaking(), await speaking(), await speaking()];
    say({ slots: [[0, LAST_SLOT, old]], epoch: 3 }, old);
    say({ slots: [[0, LAST_SLOT, latest]], epoch: 4 }, latest);
    say({ slots: [[0, LAST_SLOT, cutOff]], epoch: 9, state: 'fail' }, cutOff);
    await untilServed(open(old, latest, cutOff), () => latest);
    await untilServed(open(cutOff, latest, old), () => latest);
  });

  it('leave no connection of a question behind', async () => {
    const { first, primaries, second } = await openHalves();
    await waitUntil(() => first.connections === 1 && second.connections === 1);
    await primaries.close();
    await waitUntil(() => first.connections + second.connections === 0);
  });
});

describe('slots without a primary', () => {
  it('have no link, and that is reported', async () => {
    const node = await speaking();
    say({ slots: [[0, MIDDLE - 1, node]] }, node);
    const primaries = open(node);
    const whileAsking = primaries.problem();
    await untilServed(primaries, (shard) => (shard < 32 ? node : undefined));
    expect(primaries.linkOf(63)).toBeUndefined();
    expect(primaries.problem()).toEqual(expect.stringMatching(/./));
    expect(primaries.problem()).not.toBe(whileAsking);
  });

  it('are all of them before any node was asked, and while none answers, with the code', async () => {
    const port = await freePort();
    const primaries = open({ port });
    expect(primaries.problem()).toEqual(expect.stringMatching(/./));
    expect([primaries.links(), primaries.linkOf(0)]).toEqual([[], undefined]);
    await waitUntil(() => primaries.problem()?.includes('(ECONNREFUSED)') === true);
    expect(primaries.problem()).toContain(labelOf({ port }));
  });

  it('are reported when no node answers in time', async () => {
    const hanging = await servers.speaker(() => SILENCE);
    const primaries = open(hanging);
    await waitUntil(() => primaries.problem()?.includes(labelOf(hanging)) === true);
  });

  it('are served as soon as somebody is there, without being asked for', async () => {
    const port = await freePort();
    const primaries = open({ port });
    await waitUntil(() => primaries.problem()?.includes('(ECONNREFUSED)') === true);
    await servers.speaker(nodeSaying({ slots: [[0, LAST_SLOT, { port }]] }), port);
    await untilServed(primaries, () => ({ port }));
  });
});

describe('slots that move', () => {
  it('are served from the new primary once it was looked at again; the old one keeps its link', async () => {
    const { first, links, primaries, second } = await openHalves();
    const slots: readonly Range[] = [
      [0, MIDDLE / 2 - 1, first],
      [MIDDLE / 2, LAST_SLOT, second],
    ];
    say({ slots, epoch: 2 }, first, second);
    servers.prepared = [];
    if (links[0] !== undefined) primaries.suspect(links[0]);
    await untilServed(primaries, (shard) => (shard < 16 ? first : second));
    expect([primaries.linkOf(0), primaries.linkOf(63)]).toEqual(links);
    expect(links.map((link) => link && primaries.shardsOf(link).length)).toEqual([16, 48]);
    // A node that lost some slots is not examined for that.
    expect(servers.prepared).toEqual([labelOf(second)]);
  });

  it('are not looked at again where nothing moved', async () => {
    const { first, links, primaries } = await openHalves();
    const asked = first.countOf('CLUSTER', 'SLOTS');
    servers.prepared = [];
    if (links[0] !== undefined) primaries.suspect(links[0]);
    await waitUntil(() => first.countOf('CLUSTER', 'SLOTS') > asked);
    await sleep(50);
    expect(servers.prepared).toEqual([]);
    expect([primaries.linkOf(0), primaries.linkOf(63)]).toEqual(links);
  });

  it('take the link with them when a primary has none left', async () => {
    const { first, links, primaries, second } = await openHalves();
    say({ slots: [[0, LAST_SLOT, first]], epoch: 2 }, first, second);
    if (links[1] !== undefined) primaries.suspect(links[1]);
    await untilServed(primaries, () => first);
    expect(primaries.links()).toEqual([links[0]]);
    await waitUntil(() => second.connections === 0);
    expect(links[1]?.isServing).toBe(false);
    expect(links[1] && primaries.shardsOf(links[1])).toEqual([]);
  });

  it('are where the node says over whose link something was refused, of nodes that know as much', async () => {
    const { first, links, primaries, second } = await openHalves();
    say({ slots: [[0, LAST_SLOT, first]] }, first);
    say({ slots: [[0, LAST_SLOT, second]] }, second);
    if (links[1] !== undefined) primaries.suspect(links[1]);
    await untilServed(primaries, () => second);
  });

  it('are asked for over the links that are there, not over new connections', async () => {
    const { first, links, primaries, second } = await openHalves();
    await waitUntil(() => first.connections === 1 && second.connections === 1);
    const asked = second.countOf('CLUSTER', 'INFO');
    if (links[1] !== undefined) primaries.suspect(links[1]);
    await waitUntil(() => second.countOf('CLUSTER', 'INFO') > asked);
    expect([first.connections, second.connections]).toEqual([1, 1]);
  });
});

describe('a primary that goes away', () => {
  it('is replaced by the node that the others name', async () => {
    const { first, primaries, second } = await openHalves();
    const promoted = await speaking();
    say({ slots: halves(first, promoted), epoch: 2 }, first, promoted);
    const [, link] = primaries.links();
    await second.stop();
    if (link !== undefined) primaries.suspect(link);
    await untilServed(primaries, (shard) => (shard < 32 ? first : promoted));
  });

  it('is asked after at the seeds and at all that were known when none is left, until one is back', async () => {
    const { first, primaries, second } = await openHalves();
    const seedPort = first.port;
    await first.stop();
    await second.stop();
    await waitUntil(() => servingLabels(primaries).every((label) => label === undefined));
    const [link] = primaries.links();
    if (link !== undefined) primaries.suspect(link);
    // Not the seed, which stays away.
    const back = await servers.speaker(() => null, second.port);
    say({ slots: [[0, LAST_SLOT, back]], epoch: 3 }, back);
    await untilServed(primaries, () => back);
    expect(back.port).not.toBe(seedPort);
  });
});

it('asks no more once it is closed', async () => {
  const { first, primaries, second } = await openHalves();
  const [link] = primaries.links();
  await primaries.close();
  const asked = first.asked.length + second.asked.length;
  if (link !== undefined) primaries.suspect(link);
  await sleep(150);
  expect(first.asked.length + second.asked.length).toBe(asked);
});
