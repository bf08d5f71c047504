import { describe, expect, it } from '@jest/globals';
import type { RedisEndpoint } from '../../../src/verifier/redis/endpoint.ts';
import { countOwnReplicas, findServerProblem } from '../../../src/verifier/redis/server-requirements.ts';

const LABEL = 'redis.example:6379';
const KINDS: readonly RedisEndpoint['kind'][] = ['single', 'sentinel', 'cluster'];

/** What `INFO` says of a server that may be used, but for the changes; undefined leaves a field out. */
function infoWith(kind: RedisEndpoint['kind'], changes: { readonly [field: string]: string | undefined }) {
  const fields = {
    redis_version: '7.0.15',
    redis_mode: kind === 'cluster' ? 'cluster' : 'standalone',
    loading: '0',
    role: 'master',
    maxmemory_policy: 'noeviction',
    cluster_enabled: kind === 'cluster' ? '1' : '0',
    ...changes,
  };
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}:${value}`],
  );
  return `# Server\r\n${lines.join('\r\n')}\r\n`;
}

const problemWith = (
  kind: RedisEndpoint['kind'],
  changes: { readonly [field: string]: string | undefined },
) => findServerProblem(infoWith(kind, changes), LABEL, kind);

describe.each(KINDS)('a server given as %s', (kind) => {
  it.each([['7.0.0'], ['7.4.1'], ['10.0.0']])('may be used from version 7 on: %s', (redis_version) => {
    expect(problemWith(kind, { redis_version })).toBeUndefined();
  });

  it.each([
    [{ redis_version: undefined }],
    [{ redis_version: '6.2.14' }],
    [{ redis_version: 'seven' }],
    [{ redis_mode: 'sentinel' }],
    [{ loading: '1' }],
    [{ loading: undefined }],
    [{ role: 'slave' }],
    [{ role: undefined }],
    [{ maxmemory_policy: 'allkeys-lru' }],
    [{ maxmemory_policy: 'volatile-ttl' }],
    [{ maxmemory_policy: undefined }],
    [{ cluster_enabled: kind === 'cluster' ? '0' : '1' }],
  ])('may not be used when it says %j, and the line about it names the server', (changes) => {
    expect(problemWith(kind, changes)).toContain(LABEL);
  });

  it('must say that it is no Cluster where it is to be none', () => {
    expect(problemWith(kind, { cluster_enabled: undefined }) === undefined).toBe(kind === 'cluster');
  });

  it('tells faults apart, the first of several first', () => {
    const faults = [
      { redis_version: undefined },
      { redis_mode: 'sentinel' },
      { cluster_enabled: kind === 'cluster' ? '0' : '1' },
      { redis_version: '6.2.14' },
      { loading: '1' },
      { role: 'slave' },
      { maxmemory_policy: 'allkeys-lru' },
    ];
    const lines = faults.map((changes) => problemWith(kind, changes));
    expect(new Set(lines).size).toBe(faults.length);
    for (const [at, line] of lines.entries()) {
      // Two faults of the Redis version cannot be combined.
      const later = faults.slice(at + 1).filter((changes) => !('redis_version' in changes));
      expect(problemWith(kind, Object.assign({}, ...later, faults[at]))).toBe(line);
    }
  });
});

it('an answer that is none of Redis is a fault', () => {
  for (const reply of [undefined, 'PONG', 7])
    expect(findServerProblem(reply, LABEL, 'single')).toContain(LABEL);
});

describe('the replicas that may take the place of a single server', () => {
  const countWith = (changes: { readonly [field: string]: string | undefined }) =>
    countOwnReplicas(infoWith('single', { connected_slaves: '0', ...changes }));

  it('are none while it was never replicated', () => {
    expect(countWith({ master_replid2: '0'.repeat(40) })).toBeUndefined();
  });

  it('are counted, and may be none for one that was a replica itself', () => {
    expect(countWith({ connected_slaves: '12' })).toBe(12);
    expect(countWith({ master_replid2: `${'0'.repeat(39)}a` })).toBe(0);
  });

  it('may exist when the server does not tell', () => {
    expect(countWith({ connected_slaves: undefined })).toBe(1);
    expect(countWith({ master_replid2: undefined })).toBe(0);
    expect(countWith({ master_replid2: '' })).toBe(0);
  });
});

it('a replica is reported differently for each kind', () => {
  const lines = KINDS.map((kind) => problemWith(kind, { role: 'slave' }));
  expect(new Set(lines).size).toBe(KINDS.length);
});
