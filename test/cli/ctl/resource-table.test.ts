/** Tables and members of `proofgate ctl get` for people, at several widths of the terminal. */
import { describe, expect, it } from '@jest/globals';
import { memberLines, tableLines } from '../../../src/cli/ctl/resource-table.ts';

const COLUMNS = ['key_id', 'subject', 'waiting_for'];
const KEYS = [
  { key_id: 'dk_1', subject: 'client:billing', waiting_for: ['eu', 'us'] },
  { key_id: 'dk_22', subject: 'client:a-rather-long-name-of-a-client', waiting_for: [] },
];

describe('a table', () => {
  const TABLE = [
    'KEY_ID  SUBJECT                                WAITING_FOR',
    'dk_1    client:billing                         eu, us',
    'dk_22   client:a-rather-long-name-of-a-client  -',
  ];

  it.each([undefined, 80, 200, 58])('of a terminal of %p columns', (width) => {
    expect(tableLines(COLUMNS, KEYS, width)).toEqual(TABLE);
  });

  it.each([57, 40])('gives way to members below each other at %p columns', (width) => {
    expect(tableLines(COLUMNS, KEYS, width)).toEqual([
      'key_id       dk_1',
      'subject      client:billing',
      'waiting_for  eu, us',
      '',
      'key_id       dk_22',
      'subject      client:a-rather-long-name-of-a-client',
      'waiting_for  -',
    ]);
  });

  it('says that it has no rows', () => {
    expect(tableLines(COLUMNS, [], 40)).toEqual(['none']);
  });
});

describe('members', () => {
  const BODY = {
    name: 'billing',
    rules: { claims: ['a', 'b'], at: { most: 3 } },
    revisions: [{ revision: 1, by: { kind: 'operator', name: 'Ada' } }],
    none: {},
  };

  it('hold no JSON', () => {
    expect(memberLines(BODY, undefined)).toEqual([
      'name           billing',
      'rules.claims   a, b',
      'rules.at.most  3',
      'revisions:',
      '  REVISION  BY',
      '  1         kind=operator name=Ada',
      'none           -',
    ]);
  });

  it('show inner tables as members in a narrow terminal', () => {
    expect(memberLines(BODY, 30).slice(3, 6)).toEqual([
      'revisions:',
      '  revision  1',
      '  by.kind   operator',
    ]);
  });
});
