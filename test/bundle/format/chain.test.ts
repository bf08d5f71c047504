import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { checkChainAgainstMark, headOf, headOfHash, judgeStep } from '../../../src/bundle/format/chain.ts';

const payload = Buffer.from('{"revision":1}');
const first = headOf(undefined, payload) ?? '';

describe('heads', () => {
  it('are the hash that docs/design/bundle.md names', () => {
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
    const step = checkChainAgainstMark(before, [candidate], 'bundle.jws');
    expect(step.kind === 'refuse' ? step.error.code : step.kind).toBe(expected);
  });
});

describe('documents that were found together', () => {
  const mark = { revision: 7, head: 'm' };
  const at = (revision: number, head = `h${revision}`) => ({ revision, head });
  it.each<[string, [ReturnType<typeof at>, ...ReturnType<typeof at>[]], string]>([
    ['end at the mark', [at(5), at(7, 'm')], 'nothing_to_do'],
    ['lead through it', [at(5), at(7, 'm'), at(8)], 'accept'],
    ['begin at it', [at(7, 'm'), at(8)], 'accept'],
    ['begin above it', [at(8), at(9)], 'accept'],
    ['end below it', [at(5), at(6)], 'revision_lower'],
    ['end beside it', [at(5), at(7)], 'revision_conflict'],
    ['lead past it beside it', [at(5), at(7), at(8)], 'revision_conflict'],
    ['lead past it without it', [at(5), at(9)], 'revision_conflict'],
    ['begin beside it', [at(7), at(8)], 'revision_conflict'],
  ])('%s', (_name, positions, expected) => {
    const step = checkChainAgainstMark(mark, positions, 'bundle.jws');
    expect(step.kind === 'refuse' ? step.error.code : step.kind).toBe(expected);
  });
});

describe('a delta or link', () => {
  const from = { revision: 7, head: first };
  const second = { revision: 8, head: headOf(first, payload) ?? '' };
  it.each([
    ['the next', 8, first, undefined],
    ['the longest step', 1_000_007, first, undefined],
    ['a step too long', 1_000_008, first, 'revision_step'],
    ['the same revision', 7, first, 'revision_lower'],
    ['a lower one', 6, first, 'revision_lower'],
    ['after another head', 8, second.head, 'chain_broken'],
  ])('%s', (_name, revision, previousHead, code) => {
    const step = { previousHead, position: { revision, head: second.head } };
    expect(judgeStep(from, step, 'delta-8.jws')?.code).toBe(code);
  });

  it('that names a payload’s hash brings about the head of that payload', () => {
    expect(headOfHash(first, createHash('sha256').update(payload).digest())).toBe(second.head);
    expect(headOfHash('abc', Buffer.alloc(32))).toBeUndefined();
  });
});
