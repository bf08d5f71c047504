/** Tests the key file of one or two master keys. */
import { randomBytes } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { UnsealError } from '../../../src/control/secrets/master-key.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';

const [ONE, TWO, THREE] = [1, 2, 3].map(() => randomBytes(32).toString('base64url')) as [
  string,
  string,
  string,
];

it('reads one key, or two in their order', () => {
  const [one] = MasterKeys.parse(`${ONE}\n`).all;
  const two = MasterKeys.parse(`${TWO}\r\n${ONE}`).all;
  expect(two.map(({ id }) => id)).toEqual([MasterKeys.parse(TWO).all[0].id, one.id]);
});

it.each([
  ['nothing', '', 'master_key_invalid'],
  ['three keys', `${ONE}\n${TWO}\n${THREE}`, 'master_key_invalid'],
  ['an empty line between two', `${ONE}\n\n${TWO}`, 'master_key_invalid'],
  ['a short second key', `${ONE}\n${TWO.slice(2)}`, 'master_key_invalid'],
  ['a key twice', `${ONE}\n${ONE}`, 'master_keys_equal'],
])('rejects %s', (_, text, code) => {
  expect(() => MasterKeys.parse(text)).toThrow(expect.objectContaining({ code }));
});

it('opens what either key sealed, for its purpose alone', () => {
  const keys = MasterKeys.parse(`${TWO}\n${ONE}`);
  for (const line of [ONE, TWO]) {
    const sealed = MasterKeys.parse(line).all[0].seal(Buffer.from('secret'), 'purpose');
    expect(keys.unseal(sealed, 'purpose').toString()).toBe('secret');
    expect(() => keys.unseal(sealed, 'another')).toThrow(UnsealError);
  }
  const foreign = MasterKeys.parse(THREE).all[0].seal(Buffer.from('secret'), 'purpose');
  expect(() => keys.unseal(foreign, 'purpose')).toThrow(UnsealError);
});
