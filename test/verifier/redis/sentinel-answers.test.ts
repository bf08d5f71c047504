import { describe, expect, it } from '@jest/globals';
import { latestView, parseSentinelView } from '../../../src/verifier/redis/sentinel-primary.ts';

const PRIMARY = ['name', 'replay', 'ip', '10.0.0.1', 'port', '6379', 'config-epoch', '4'];
const replica = (priority: string) => ['name', 'any', 'slave-priority', priority];

describe('what a Sentinel says', () => {
  it('is a primary, an epoch, and how many replicas there are if any may be promoted', () => {
    const expected = { primary: { host: '10.0.0.1', port: 6379 }, configEpoch: 4, replicas: 3 };
    const replicas = [replica('100'), replica('0'), ['name', 'not-known-yet']];
    expect(parseSentinelView(PRIMARY, replicas)).toEqual(expected);
    expect(parseSentinelView(PRIMARY, [replica('0'), replica('0')])?.replicas).toBe(0);
    // RESP3 gives maps.
    const pairs = PRIMARY.flatMap((name, at) => (at % 2 ? [] : [[name, PRIMARY[at + 1]] as const]));
    expect(parseSentinelView(new Map(pairs), replicas)).toEqual(expected);
    expect(parseSentinelView(Object.fromEntries(pairs), replicas)).toEqual(expected);
  });

  it.each([
    [null, []],
    ['OK', []],
    [PRIMARY, null],
    [PRIMARY.slice(0, 4), []],
    [PRIMARY.map((word) => (word === '6379' ? '65536' : word)), []],
    [PRIMARY.map((word) => (word === '4' ? '-1' : word)), []],
    [PRIMARY.map((word) => (word === '6379' ? '0' : word)), []],
    [PRIMARY.map((word) => (word === '6379' ? 'x' : word)), []],
    [PRIMARY.map((word) => (word === '10.0.0.1' ? '' : word)), []],
    [PRIMARY.map((word) => (word === 'ip' ? 'host' : word)), []],
    [PRIMARY, { 0: replica('100') }],
  ])('is not believed when it is no such answer: %j', (primary, replicas) => {
    expect(parseSentinelView(primary, replicas)).toBeUndefined();
  });

  it.each(['1', '65535'])('may name port %s', (port) => {
    const primary = PRIMARY.map((word) => (word === '6379' ? port : word));
    expect(parseSentinelView(primary, [])?.primary.port).toBe(Number(port));
  });

  it('counts by the latest failover, with as many replicas as anybody knows', () => {
    const view = (host: string, configEpoch: number, replicas: number) => ({
      primary: { host, port: 1 },
      configEpoch,
      replicas,
    });
    const found = latestView([view('old', 1, 5), undefined, view('new', 2, 0), view('new', 2, 2)]);
    expect(found).toEqual(view('new', 2, 2));
    expect(latestView([undefined])).toBeUndefined();
    const old = view('old', 1, 5);
    const latest = view('new', 2, 3);
    for (const views of [
      [old, latest],
      [latest, old],
      [latest, view('new', 2, 1), old],
      [view('new', 2, 1), old, latest],
    ]) {
      expect(latestView(views)).toEqual(latest);
    }
    // Of equal views, the first answer wins.
    expect(latestView([latest, view('other', 2, 3)])).toBe(latest);
  });
});
