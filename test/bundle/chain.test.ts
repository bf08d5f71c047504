import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { headOf, judgeBundle } from '../../src/bundle/chain.ts';

const payload = Buffer.from('{"revision":1}');
const first = headOf(undefined, payload) ?? '';

describe('heads', () => {
  it('are the hash that docs/bundle.md names', () => {
    const input = Buffer.concat([
      Buffer.from('proofgate-head-v1\n'),
      Buffer.alloc(32),
      createHash('sha256').update(payload).digest(),
    ]);
    expect(first).toBe(createHash('sha256').update(input).digest('base64url'));
    // From another implementation.
    expect(first).toBe('VmcbVAx8007QC3EsCnv7JY9NyCl2e2zEPY9v2Ilc4Ro');
  });

  it('continue the one before', () => {
    const second = headOf(first, payload);
    expect(second).not.toBe(first);
    const input = Buffer.concat([
      Buffer.from('proofgate-head-v1\n'),
      Buffer.from(first, 'base64url'),
      createHash('sha256').update(payload).digest(),
    ]);
    expect(second).toBe(createHash('sha256').update(input).digest('base64url'));
  });

  it.each(['', 'abc', `${'A'.repeat(42)}B`, `${'A'.repeat(43)}=`, 'A'.repeat(44)])(
    'have no predecessor %j',
    (previous) => {
      expect(headOf(previous, payload)).toBeUndefined();
    },
  );
});

describe('a whole bundle', () => {
  const mark = { revision: 7, head: first };
  it.each([
    ['the first ever', undefined, { revision: 1, head: 'h' }, 'accept'],
    ['the next', mark, { revision: 8, head: 'h' }, 'accept'],
    ['one far ahead', mark, { revision: 5_000_000, head: 'h' }, 'accept'],
    ['the same', mark, mark, 'nothing_to_do'],
    ['a fork', mark, { revision: 7, head: 'h' }, 'revision_conflict'],
    ['a lower one', mark, { revision: 6, head: first }, 'revision_lower'],
  ])('%s', (_name, before, candidate, expected) => {
    const step = judgeBundle(before, candidate, 'bundle.jws');
    expect(step.kind === 'refuse' ? step.error.code : step.kind).toBe(expected);
  });
});
