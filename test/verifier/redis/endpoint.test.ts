import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { parseRedisEndpoint, RedisSettingError, withPassword } from '../../../src/verifier/redis/endpoint.ts';

/** Without the function that reveals the password, which compares with nothing. */
function parsed(url: string) {
  const { login, ...rest } = parseRedisEndpoint(url);
  return { ...rest, username: login.username, password: login.revealPassword() };
}

const NO_LOGIN = { username: undefined, password: undefined };
const SOMEBODY = { username: 'us:er', password: 'p@ss/wo,rd' };
const CREDENTIALS = 'us%3Aer:p%40ss%2Fwo%2Crd@';

describe('the URL of Redis', () => {
  it('names one server', () => {
    const address = { host: 'redis.example', port: 6379 };
    const single = { kind: 'single', tls: false, address, databaseNumber: 0, ...NO_LOGIN };
    expect(parsed('redis://redis.example')).toEqual(single);
    expect(parsed('redis://redis.example/')).toEqual(single);
    expect(parsed(`rediss://${CREDENTIALS}[2001:db8::1]:6380/15`)).toEqual({
      ...single,
      tls: true,
      address: { host: '2001:db8::1', port: 6380 },
      databaseNumber: 15,
      ...SOMEBODY,
    });
  });

  it('names Sentinels and a primary', () => {
    expect(parsed('redis-sentinel://one.example,10.0.0.2:26380,[::1],[fe80::1]:7/my-primary.1')).toEqual({
      kind: 'sentinel',
      tls: false,
      sentinels: [
        { host: 'one.example', port: 26379 },
        { host: '10.0.0.2', port: 26380 },
        { host: '::1', port: 26379 },
        { host: 'fe80::1', port: 7 },
      ],
      primaryName: 'my-primary.1',
      databaseNumber: 0,
      ...NO_LOGIN,
    });
    const whole = parsed(`rediss-sentinel://${CREDENTIALS}one.example:1/replay/3`);
    expect(whole).toMatchObject({ tls: true, primaryName: 'replay', databaseNumber: 3, ...SOMEBODY });
  });

  it('names nodes of a Cluster', () => {
    expect(parsed('redis-cluster://one.example,two.example:7001')).toEqual({
      kind: 'cluster',
      tls: false,
      seeds: [
        { host: 'one.example', port: 6379 },
        { host: 'two.example', port: 7001 },
      ],
      ...NO_LOGIN,
    });
    expect(parsed(`rediss-cluster://${CREDENTIALS}one.example/`)).toMatchObject({ tls: true, ...SOMEBODY });
    expect(parsed('redis-cluster://:only-a-password@one.example')).toMatchObject({
      username: undefined,
      password: 'only-a-password',
    });
  });

  it.each([
    'redis:',
    'redis://user:verysecret@',
    'redis://:verysecret@host/database',
    'redis://:verysecret@host?db=1',
    'redis://:verysecret@host#fragment',
    'redis://:verysecret@one,two',
    'http://:verysecret@host',
    'redis-sentinel://:verysecret@host',
    'redis-sentinel://:verysecret@host/',
    'redis-sentinel://:verysecret@host/na%20me',
    'redis-sentinel://:verysecret@host/name/x',
    'redis-sentinel://:verysecret@host/name/1/2',
    'redis-sentinel://:verysecret@/name',
    'redis-sentinel://:verysecret@host,/name',
    'redis-sentinel://:verysecret@host:0/name',
    'redis-sentinel://:verysecret@host:65536/name',
    'redis-sentinel://:verysecret@host:port/name',
    'redis-sentinel://:verysecret@host,host:26379/name',
    'redis-sentinel://:verysecret@::1/name',
    'redis-sentinel://:verysecret@host/name?db=1',
    'redis-sentinel://:very@secret@host/name',
    'redis-sentinel://:verysecret%zz@host/name',
    'redis-cluster://:verysecret@host/1',
    'redis-cluster://:verysecret@host one',
    'redis-cluster://:verysecret@',
    'redis-ring://:verysecret@host',
    'x-redis-cluster://:verysecret@host',
    'redis://:verysecret@host/1x',
    'redis://:verysecret@host/x1',
    'redis://:verysecret@host/123456',
    'redis-sentinel://:verysecret@host/name/1x',
    'redis-sentinel://:verysecret@host/name/x1',
    `redis-cluster://:verysecret@${Array.from({ length: 33 }, (_, at) => `h${at}`).join(',')}`,
  ])('is refused without telling a secret: %s', (url) => {
    expect(() => parseRedisEndpoint(url)).toThrow(RedisSettingError);
    expect(() => parseRedisEndpoint(url)).not.toThrow(/secret|very/);
  });

  it('goes as far as it may', () => {
    const hosts = Array.from({ length: 32 }, (_, at) => `h${at}`);
    expect(parsed(`redis-cluster://${hosts.join(',')}`)).toMatchObject({ kind: 'cluster' });
    expect(parsed('redis-cluster://one:1,two:65535')).toMatchObject({
      seeds: [{ port: 1 }, { port: 65_535 }],
    });
    expect(parsed('redis://host/12345')).toMatchObject({ databaseNumber: 12_345 });
    expect(parsed('redis-cluster://only-a-user@one')).toMatchObject({
      username: 'only-a-user',
      password: undefined,
    });
  });

  it('tells what is wrong, each fault otherwise', () => {
    const lineOf = (url: string) => {
      try {
        parseRedisEndpoint(url);
        return 'taken';
      } catch (error) {
        return error instanceof RedisSettingError ? `${error.name}: ${error.message}` : 'thrown';
      }
    };
    const lines = [
      'redis-sentinel://host/name?db=1',
      'redis://%zz host',
      'http://host',
      'redis:',
      'redis://one,two',
      'redis://host?db=1',
      'redis-cluster://host/1',
      'redis-sentinel://host/',
      'redis-cluster://host:0',
      `redis-cluster://${Array.from({ length: 33 }, (_, at) => `h${at}`).join(',')}`,
      'redis-cluster://host,host',
      'redis://host/x',
      'redis-cluster://user%zz@host',
    ].map(lineOf);
    expect(new Set(lines).size).toBe(lines.length);
    for (const line of lines) expect(line).toMatch(/^RedisSettingError: .{10}/);
  });

  it.each([
    ['redis://redis.example', undefined],
    ['rediss://us%3Aer@[2001:db8::1]:6380/15', 'us:er'],
    ['redis://somebody:@redis.example', 'somebody'],
    ['redis-sentinel://one.example,two.example/replay/3', undefined],
    ['redis-cluster://us%3Aer@one.example,two.example', 'us:er'],
  ])('takes a password from elsewhere: %s', (url, username) => {
    const password = "p@ss:/?#%wo,rd's";
    expect(parsed(withPassword(url, password))).toEqual({ ...parsed(url), username, password });
  });

  it.each([
    ['redis://:one@redis.example', 'two'],
    ['redis-cluster://:one@redis.example', 'one'],
    ['redis://redis.example', ''],
  ])('takes no second password, and no empty one: %s', (url, password) => {
    expect(() => withPassword(url, password)).toThrow(RedisSettingError);
  });

  it('hides its password when printed', () => {
    for (const url of [
      'redis://:verysecret@host',
      'redis-sentinel://:verysecret@host/n',
      'redis-cluster://:verysecret@host',
    ]) {
      const endpoint = parseRedisEndpoint(url);
      expect(inspect(endpoint, { depth: 9, showHidden: true })).not.toContain('verysecret');
      expect(JSON.stringify(endpoint)).not.toContain('verysecret');
    }
  });
});
