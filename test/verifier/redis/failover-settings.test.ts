import { describe, expect, it } from '@jest/globals';
import {
  type DeclaredFailoverSettings,
  type ExaminedLink,
  examineFailover,
} from '../../../src/verifier/redis/failover-settings.ts';

const LABEL = 'redis.example:6379';
const NAMES = ['min-replicas-to-write', 'min-replicas-max-lag', 'cluster-node-timeout'] as const;

type RecordedEvent = { readonly [N in (typeof NAMES)[number]]?: string };

/** A server that answers `CONFIG GET` with its settings, as RESP2 does. */
function telling(settings: RecordedEvent): ExaminedLink {
  return {
    label: LABEL,
    call: async (command, ...words) => {
      if (command !== 'CONFIG' || words[0] !== 'GET') throw new Error(`asked for ${command} ${words[0]}`);
      return Object.entries(settings)
        .filter(([name]) => words.includes(name))
        .flat();
    },
  };
}

function rejecting(error: unknown): ExaminedLink {
  return { label: LABEL, call: () => Promise.reject(error) };
}

const FORBIDDEN = { name: 'ReplyError', message: 'NOPERM this user has no permissions' };
const MUTE = new Error('Command timed out');
const SOUND: RecordedEvent = {
  'min-replicas-to-write': '2',
  'min-replicas-max-lag': '10',
  'cluster-node-timeout': '15000',
};
const DECLARED: DeclaredFailoverSettings = {
  minReplicasToWrite: 1,
  minReplicasMaxLagSeconds: 4,
  clusterNodeTimeoutMs: 7_000,
};

const fitWith = (fenceMarginSeconds: number, neededReplicas: number) => ({
  kind: 'fit',
  fenceMarginSeconds,
  neededReplicas,
});
const unfitNaming = (word: string) => ({ kind: 'unfit', problem: expect.stringContaining(word) });

describe('F, by which a fence reaches beyond a promotion', () => {
  it('is 0 on a single server without replicas, which is asked for nothing', async () => {
    expect(await examineFailover(rejecting(MUTE), 'single', {}, undefined)).toEqual(fitWith(0, 0));
  });

  it('covers a single server that another may replace, and warns when it need not notice that', async () => {
    const examine = (toWrite: string, lag: string, replicas: number) =>
      examineFailover(
        telling({ 'min-replicas-to-write': toWrite, 'min-replicas-max-lag': lag }),
        'single',
        {},
        replicas,
      );
    const warned = (f: number, needed: number) => ({
      ...fitWith(f, needed),
      warning: expect.stringContaining(LABEL),
    });
    expect(await examine('0', '10', 0)).toEqual(fitWith(12, 0));
    expect(await examine('0', '10', 1)).toEqual(warned(12, 0));
    expect(await examine('1', '0', 1)).toEqual(warned(12, 0));
    expect(await examine('1', '20', 1)).toEqual(fitWith(22, 1));
    expect(await examine('1', '10', 2)).toEqual(warned(12, 1));
    expect(await examineFailover(rejecting(FORBIDDEN), 'single', DECLARED, 1)).toEqual(fitWith(12, 1));
    expect(await examineFailover(rejecting(FORBIDDEN), 'single', {}, 1)).toEqual(warned(12, 0));
  });

  it.each([
    ['30', 32],
    ['11', 13],
    ['10', 12],
    ['1', 12],
  ])('is the largest lag %s s, or 10 s where that is more, and 2 s with Sentinels', async (lag, f) => {
    const settings = { ...SOUND, 'min-replicas-max-lag': lag };
    expect(await examineFailover(telling(settings), 'sentinel', {}, 2)).toEqual(fitWith(f, 2));
  });

  it.each([
    ['10', '15000', 17],
    ['10', '15001', 18],
    ['12', '9000', 14],
    ['10', '1', 12],
    ['1', '1', 12],
  ])(
    'is the largest of lag %s s, node time-out %s ms and 10 s, and 2 s, on a Cluster',
    async (lag, timeout, f) => {
      const settings = { ...SOUND, 'min-replicas-max-lag': lag, 'cluster-node-timeout': timeout };
      expect(await examineFailover(telling(settings), 'cluster', {}, undefined)).toEqual(fitWith(f, 2));
    },
  );
});

describe('the replicas that a primary must have to write', () => {
  const examine = (toWrite: string, kind: 'sentinel' | 'cluster', replicas: number | undefined) =>
    examineFailover(telling({ ...SOUND, 'min-replicas-to-write': toWrite }), kind, {}, replicas);

  it('are all that the Sentinels know', async () => {
    expect(await examine('3', 'sentinel', 3)).toEqual(fitWith(12, 3));
    expect(await examine('2', 'sentinel', 3)).toEqual(unfitNaming(LABEL));
    expect(await examine('0', 'sentinel', 0)).toEqual(fitWith(12, 0));
  });

  it('are one when their number is unknown, and on a Cluster', async () => {
    for (const kind of ['sentinel', 'cluster'] as const) {
      expect(await examine('0', kind, undefined)).toEqual(unfitNaming(LABEL));
      expect(await examine('1', kind, undefined)).toMatchObject({ kind: 'fit' });
    }
    expect(await examine('1', 'cluster', 3)).toMatchObject({ kind: 'fit' });
    expect(await examine('0', 'cluster', 0)).toEqual(unfitNaming(LABEL));
  });

  it('count for nothing with a largest lag of 0, which matters where there are any', async () => {
    const settings = { ...SOUND, 'min-replicas-max-lag': '0' };
    expect(await examineFailover(telling(settings), 'sentinel', {}, 1)).toEqual(unfitNaming(LABEL));
    expect(await examineFailover(telling(settings), 'cluster', {}, undefined)).toEqual(unfitNaming(LABEL));
    expect(await examineFailover(telling(settings), 'sentinel', {}, 0)).toEqual(fitWith(12, 2));
    const least = { ...SOUND, 'min-replicas-max-lag': '1' };
    expect(await examineFailover(telling(least), 'sentinel', {}, 1)).toEqual(fitWith(12, 2));
  });

  it('are reported differently from a lag that switches them off', async () => {
    const few = await examine('0', 'sentinel', 1);
    const off = await examineFailover(telling({ ...SOUND, 'min-replicas-max-lag': '0' }), 'sentinel', {}, 1);
    expect(few).not.toEqual(off);
  });
});

describe('a server that does not tell', () => {
  it('is taken at the word of the operator', async () => {
    expect(await examineFailover(rejecting(FORBIDDEN), 'sentinel', DECLARED, 1)).toEqual(fitWith(12, 1));
    expect(await examineFailover(rejecting(FORBIDDEN), 'cluster', DECLARED, undefined)).toEqual(
      fitWith(12, 1),
    );
    expect(await examineFailover(rejecting(FORBIDDEN), 'sentinel', DECLARED, 2)).toEqual(unfitNaming(LABEL));
  });

  it.each([
    ['minReplicasToWrite', 'sentinel', '--redis-min-replicas-to-write'],
    ['minReplicasMaxLagSeconds', 'sentinel', '--redis-min-replicas-max-lag'],
    ['minReplicasToWrite', 'cluster', '--redis-min-replicas-to-write'],
    ['minReplicasMaxLagSeconds', 'cluster', '--redis-min-replicas-max-lag'],
    ['clusterNodeTimeoutMs', 'cluster', '--redis-cluster-node-timeout'],
  ] as const)('is not used without %s (%s), and the line names the flag', async (name, kind, flag) => {
    const declared = { ...DECLARED, [name]: undefined };
    expect(await examineFailover(rejecting(FORBIDDEN), kind, declared, 1)).toEqual(unfitNaming(flag));
  });

  it('needs no node time-out with Sentinels', async () => {
    const declared = { ...DECLARED, clusterNodeTimeoutMs: undefined };
    expect(await examineFailover(rejecting(FORBIDDEN), 'sentinel', declared, 1)).toEqual(fitWith(12, 1));
  });

  it('is asked itself where it tells something, whatever the operator says', async () => {
    for (const name of NAMES) {
      const settings = { ...SOUND, [name]: undefined };
      const events = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
      expect(await examineFailover(telling(events), 'cluster', DECLARED, undefined)).toMatchObject({
        kind: 'unfit',
      });
    }
  });

  it('is not judged at all when it does not answer', async () => {
    for (const kind of ['sentinel', 'cluster'] as const) {
      await expect(examineFailover(rejecting(MUTE), kind, DECLARED, 1)).rejects.toBe(MUTE);
    }
  });
});
