import { expect, it } from '@jest/globals';
import type { OpenCall } from '../../../src/enforcement/ext-authz-grpc/open-call.ts';
import { OpenCallList } from '../../../src/enforcement/ext-authz-grpc/open-call-list.ts';

/** Only the links of a call are looked at. */
function calls(count: number): OpenCall[] {
  return Array.from({ length: count }, () => Object.create({ isListed: false }));
}

function filled(members: readonly OpenCall[]): OpenCallList {
  const list = new OpenCallList();
  for (const call of members) list.add(call);
  return list;
}

it.each([0, 1, 2])('keeps the order of the others when the call at %d leaves', (index) => {
  const members = calls(3);
  const list = filled(members);
  const [gone] = members.splice(index, 1);
  expect(gone && list.delete(gone)).toBe(true);
  expect([...list]).toEqual(members);
  expect(list.size).toBe(2);
  const late = calls(1);
  for (const call of late) list.add(call);
  expect([...list]).toEqual([...members, ...late]);
});

it('knows who is not there, and counts nobody twice', () => {
  const [member, stranger] = calls(2);
  if (member === undefined || stranger === undefined) throw new Error('no calls');
  const list = filled([member]);
  expect(list.delete(stranger)).toBe(false);
  expect(list.delete(member)).toBe(true);
  expect(list.delete(member)).toBe(false);
  expect([list.size, [...list]]).toEqual([0, []]);
});

it('leaves a call that is gone no way to those that came after it', () => {
  const members = calls(3);
  const list = filled(members);
  for (const call of members) list.delete(call);
  expect(members.map(({ next, previous }) => [next, previous])).toEqual([
    [undefined, undefined],
    [undefined, undefined],
    [undefined, undefined],
  ]);
});
