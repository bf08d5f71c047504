/**
 * The replay store's scripts, with what they ask the server itself taken from keys, so that a test says what clock and
 * replication are; and a real Redis to run them on, empty before each test.
 */
import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { Redis } from 'ioredis';
import { REPLAY_SCRIPTS } from '../../../src/verifier/redis/replay-scripts.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';

const ASKED = { time: "redis.call('TIME')[1]", info: "redis.call('INFO', 'replication')" } as const;
type Asked = keyof typeof ASKED;

/** @throws when a script does not ask for it: the test would test the real clock */
export function scriptsFedByKeys(...asked: readonly Asked[]): {
  readonly consumeLua: string;
  readonly prepareLua: string;
} {
  const fed = (source: string) =>
    asked.reduce((text, name) => {
      if (!text.includes(ASKED[name])) throw new Error(`a script without ${ASKED[name]}`);
      return text.replaceAll(ASKED[name], `redis.call('GET', '{0}${name}')`);
    }, source);
  return { consumeLua: fed(REPLAY_SCRIPTS.consume.source), prepareLua: fed(REPLAY_SCRIPTS.prepare.source) };
}

/** Starts a Redis for the whole test file. @param use receives the client before the first test */
export function withRedis(use: (redis: Redis) => void): void {
  let server: TestRedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await TestRedisServer.start();
    redis = new Redis(server.port, '127.0.0.1');
    use(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    await redis.flushall();
  });
}
