/**
 * Tests Redis while it is gone, slow, read-only or full: no request reaches the API unless its proof was recorded as consumed,
 * every answer says what failed, and service resumes by itself. `PROOFGATE_TEST_REQUESTS` sets the number of requests (`make
 * soak`).
 */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import type { TestRedisServer } from '../../support/harness/redis-server.ts';
import type { GuardedRedis } from '../../support/site/verifier-states.ts';
import { CAMPAIGN_TIMEOUT_MS, expectRecovery, OTHER_REQUESTS } from './campaign.ts';
import { keepDoing, useFailClosedFixture } from './fail-closed-fixture.ts';

const fixture = useFailClosedFixture();
const run = promisify(execFile);
const tenth = Math.ceil(OTHER_REQUESTS / 10);

/** Why the replay store may refuse while Redis fails. */
const STORE = 'replay_store_unavailable/store';
/**
 * What else: a request's own fault, which comes first, a proof that a Redis that takes nothing new still knows, or, on a machine that is
 * busy testing, a verifier that is late or has enough.
 */
const MAY_BE =
  /^(jti_replay$|(replay_store_unavailable|invalid_request_proof|request_binding_mismatch|verifier_unavailable)\/(?!audit|internal))/;

interface Fault {
  /** The connection is the test's own, with the password. */
  begin(redis: TestRedisServer, command: Command): Promise<void>;
  end(redis: TestRedisServer, command: Command): Promise<void>;
}

type Command = (...words: readonly string[]) => Promise<void>;

const FAULTS: { readonly [name: string]: Fault } = {
  'gone, and back without memory': {
    begin: (redis) => redis.kill(),
    end: (redis) => redis.startAgain(),
  },
  hung: {
    begin: async (redis) => redis.freeze(),
    end: async (redis) => redis.thaw(),
  },
  'read-only, as a replica': {
    begin: (_redis, command) => command('REPLICAOF', '127.0.0.1', '1'),
    end: (_redis, command) => command('REPLICAOF', 'NO', 'ONE'),
  },
  'read-only, for want of replicas': {
    begin: (_redis, command) => command('CONFIG', 'SET', 'min-replicas-to-write', '1'),
    end: (_redis, command) => command('CONFIG', 'SET', 'min-replicas-to-write', '0'),
  },
  full: {
    begin: (_redis, command) => command('CONFIG', 'SET', 'maxmemory', '1'),
    end: (_redis, command) => command('CONFIG', 'SET', 'maxmemory', '0'),
  },
};

const begin = () => fixture.begin({ requests: OTHER_REQUESTS, flags: ['--redis-timeout', '200ms'] });

function commandOn({ url }: GuardedRedis): Command {
  const { password, port } = new URL(url);
  const env = { ...process.env, REDISCLI_AUTH: decodeURIComponent(password) };
  return async (...words) => {
    const { stdout } = await run('redis-cli', ['-h', '127.0.0.1', '-p', port, ...words], { env });
    if (stdout.trim() !== 'OK') throw new Error(`${words.join(' ')}: ${stdout}`);
  };
}

it.each(Object.entries(FAULTS))(
  '%s',
  async (name, fault) => {
    const { campaign, redis } = await begin();
    const command = commandOn(redis);
    const underWay = campaign.send(tenth);
    await fault.begin(redis.server, command);
    await underWay;
    campaign.failing();
    await campaign.sendUntilReported(STORE, OTHER_REQUESTS);
    const outcomes = campaign.duringFault();
    expect([...outcomes.keys()].filter((outcome) => !MAY_BE.test(outcome))).toEqual([]);
    await fault.end(redis.server, command);
    await expectRecovery(`Redis ${name}`, campaign, OTHER_REQUESTS);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'slow',
  async () => {
    const { campaign, redis } = await begin();
    fixture.onEnd(() => redis.server.thaw());
    // Longer than the verifier's time-out in most rounds: the verifier has given up when Redis resumes.
    const slowing = keepDoing(async () => {
      redis.server.freeze();
      await delay(250);
      redis.server.thaw();
      await delay(60);
    });
    campaign.failing();
    await campaign.send(OTHER_REQUESTS);
    await slowing.stop();
    expect([...campaign.duringFault().keys()]).toEqual(expect.arrayContaining([STORE]));
    await expectRecovery('Redis slow', campaign, OTHER_REQUESTS);
  },
  CAMPAIGN_TIMEOUT_MS,
);
