import { describe, expect, it } from '@jest/globals';
import { parseCount, parseInfo, parsePairs } from '../../../src/verifier/redis/info.ts';

describe('the answer to INFO', () => {
  it('is its lines with a colon; what follows the first one is the value', () => {
    const info = '# Server\r\nredis_version:7.0.15\r\nexecutable:/usr/bin:x\r\n:nameless\r\nempty:\r\n\r\n';
    expect([...parseInfo(info)]).toEqual([
      ['redis_version', '7.0.15'],
      ['executable', '/usr/bin:x'],
      ['empty', ''],
    ]);
  });

  it.each([[null], [undefined], [7], [['redis_version:7.0.15']], [{ redis_version: '7.0.15' }]])(
    'is empty where it is no text: %j',
    (reply) => {
      expect(parseInfo(reply).size).toBe(0);
    },
  );
});

describe('names and values', () => {
  const expected = [
    ['a', '1'],
    ['b', '2'],
  ];

  it.each<[string, unknown]>([
    ['by turns, as RESP2 has them', ['a', '1', 'b', '2']],
    ['by turns, the last one without a value', ['a', '1', 'b', '2', 'c']],
    ['as a map, as RESP3 has them', new Map(Object.entries({ a: '1', b: '2' }))],
    ['as an object', { a: '1', b: '2' }],
    ['beside others that are no texts', ['a', '1', 'n', 7, 8, 'm', 'b', '2', null, null]],
  ])('are read %s', (_what, reply) => {
    expect([...parsePairs(reply)]).toEqual(expected);
  });

  it.each([[null], [undefined], [7], ['ab']])('are none in %j', (reply) => {
    expect(parsePairs(reply).size).toBe(0);
  });
});

describe('a count', () => {
  it.each([
    ['0', 0],
    ['007', 7],
    ['999999999999999', 999_999_999_999_999],
  ])('%j', (text, count) => {
    expect(parseCount(text)).toBe(count);
  });

  it.each([[undefined], [''], ['-1'], ['1.5'], ['1e3'], [' 1'], ['1 '], ['1\n'], ['1000000000000000']])(
    'is not %j',
    (text) => {
      expect(parseCount(text)).toBeUndefined();
    },
  );
});
