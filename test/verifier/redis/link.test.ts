/** Tests one link to a real server, with scripted examinations. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { classifyFault } from '../../../src/verifier/redis/faults.ts';
import { type Examination, RedisLink } from '../../../src/verifier/redis/link.ts';
import { redisScript } from '../../../src/verifier/redis/script.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';

const SELDOM_MS = 3_600_000;
const FIT: Examination = {
  kind: 'fit',
  fenceMarginSeconds: 12,
  neededReplicas: 2,
  warning: 'it has replicas',
};
const UNFIT: Examination = { kind: 'unfit', problem: 'it evicts' };

let server: TestRedisServer;
let opened: RedisLink[] = [];

beforeAll(async () => {
  server = await TestRedisServer.start();
});
afterAll(() => server.stop());
afterEach(async () => {
  server.thaw();
  for (const link of opened) await link.close();
  opened = [];
});

/** Holds its waiters back until it is opened. */
class Gate {
  open: () => void = () => undefined;
  readonly whenOpen = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

/** Scripted results of examination and preparation, with their call counts. */
class Plan {
  examination: Examination | Error | object = FIT;
  problem: string | undefined;
  examined = 0;
  prepared = 0;
  /** While set, examinations last until it resolves. */
  held: Promise<void> | undefined;

  /** Redis' own number of the connection that each examination came over. */
  readonly clientIds: unknown[] = [];

  readonly examine = async (link: RedisLink): Promise<Examination> => {
    this.examined += 1;
    this.clientIds.push(await link.call('CLIENT', 'ID').catch(() => undefined));
    const answer = this.examination;
    await this.held;
    if (!('kind' in answer)) throw answer;
    return answer as Examination;
  };

  readonly prepare = async (): Promise<string | undefined> => {
    this.prepared += 1;
    return this.problem;
  };
}

function open(plan: Plan, { port = server.port, recheckIntervalMs = SELDOM_MS } = {}): RedisLink {
  const link = new RedisLink({
    connection: {
      address: { host: '127.0.0.1', port },
      tls: false,
      login: { username: undefined, revealPassword: () => undefined },
      databaseNumber: 0,
      commandTimeoutMs: 500,
      connectTimeoutMs: 2_000,
      certificateAuthorities: undefined,
    },
    recheckIntervalMs,
    examine: plan.examine,
    prepare: plan.prepare,
  });
  opened.push(link);
  return link;
}

async function openServing(plan = new Plan(), options: Parameters<typeof open>[1] = {}) {
  const link = open(plan, options);
  await waitUntil(() => link.isServing);
  return link;
}

const cutConnections = () => server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');

describe('a link', () => {
  it('serves once the server was found fit and prepared, and not before', async () => {
    const plan = new Plan();
    const gate = new Gate();
    plan.held = gate.whenOpen;
    const link = open(plan);
    let hasBegunToServe = false;
    const serving = link.whenServing().then(() => {
      hasBegunToServe = true;
    });
    expect(link.problem).toContain(link.label);
    await waitUntil(() => plan.examined === 1);
    expect([link.isConnected, link.isServing, hasBegunToServe]).toEqual([true, false, false]);
    gate.open();
    await serving;
    expect([link.isServing, link.problem, link.fenceMarginSeconds]).toEqual([true, undefined, 12]);
    expect([link.neededReplicas, link.warning]).toEqual([2, 'it has replicas']);
    expect([plan.examined, plan.prepared]).toEqual([1, 1]);
    await link.whenServing();
  });

  it('is named by its address', async () => {
    expect(open(new Plan()).label).toBe(`127.0.0.1:${server.port}`);
  });

  it('looks again after its interval, and no sooner', async () => {
    const often = new Plan();
    await openServing(often, { recheckIntervalMs: 5 });
    await waitUntil(() => often.examined >= 4);
    const seldom = new Plan();
    await openServing(seldom);
    await sleep(50);
    expect(seldom.examined).toBe(1);
  });
});

describe('a server that is unfit', () => {
  it('is not served from, is reported, and is checked again by itself', async () => {
    const plan = new Plan();
    plan.examination = UNFIT;
    const link = open(plan);
    await waitUntil(() => link.problem === 'it evicts');
    expect([link.isServing, link.isConnected, plan.prepared]).toEqual([false, true, 0]);
    // Once a second, not all the time.
    expect(plan.examined).toBeLessThan(5);
    plan.examination = FIT;
    await waitUntil(() => link.isServing);
  });

  it('is left: its name may lead to another server by now', async () => {
    const plan = new Plan();
    plan.examination = UNFIT;
    const link = open(plan);
    await waitUntil(() => plan.clientIds.length >= 2);
    expect(new Set(plan.clientIds).size).toBe(plan.clientIds.length);
    expect(link.problem).toBe('it evicts');
  });

  it('may be so for who uses it alone', async () => {
    const plan = new Plan();
    plan.problem = 'the clocks are apart';
    const link = open(plan);
    await waitUntil(() => link.problem === plan.problem);
    expect(link.isServing).toBe(false);
  });

  it('may reject the command, which is reported with the code', async () => {
    const plan = new Plan();
    plan.examination = { name: 'ReplyError', message: 'NOPERM no permissions' };
    const link = open(plan);
    await waitUntil(() => link.problem?.includes('(NOPERM)') === true);
    expect([link.isServing, link.isConnected]).toEqual([false, true]);
    expect(plan.examined).toBe(1);
  });

  it('is found out while it serves, as soon as it is suspected', async () => {
    const plan = new Plan();
    const link = await openServing(plan);
    plan.examination = UNFIT;
    link.suspect();
    await waitUntil(() => !link.isServing);
    expect(link.problem).toBe('it evicts');
    // Further suspicions do not make it ask more often.
    const { examined } = plan;
    for (let count = 0; count < 5; count += 1) link.suspect();
    await sleep(50);
    expect(plan.examined).toBe(examined);
  });
});

describe('a server that does not answer the examination', () => {
  it('is asked twice, then connected to anew', async () => {
    const plan = new Plan();
    plan.examination = new Error('Command timed out');
    const link = open(plan);
    await waitUntil(() => plan.clientIds.length >= 3);
    const [first, second, third] = plan.clientIds;
    expect([second, third === first]).toEqual([first, false]);
    expect(link.isServing).toBe(false);
    expect(link.problem).toContain(link.label);
    plan.examination = FIT;
    await waitUntil(() => link.isServing);
    expect(link.problem).toBeUndefined();
  });

  it('is served from when it answers the second time', async () => {
    const plan = new Plan();
    const answers: (Examination | Error)[] = [new Error('Command timed out'), FIT];
    const { examine } = plan;
    const link = await openServing(
      Object.assign(plan, {
        examine: (asked: RedisLink) => {
          plan.examination = answers.shift() ?? FIT;
          return examine(asked);
        },
      }),
    );
    expect([plan.examined, link.isServing]).toEqual([2, true]);
    expect(new Set(plan.clientIds).size).toBe(1);
  });
});

describe('a connection that is lost', () => {
  it('is made again, and the server looked at again before it serves', async () => {
    const plan = new Plan();
    const link = await openServing(plan);
    const gate = new Gate();
    plan.held = gate.whenOpen;
    await cutConnections();
    await waitUntil(() => plan.examined === 2);
    expect(link.isServing).toBe(false);
    expect(link.problem).toContain(link.label);
    let hasBegunToServe = false;
    const serving = link.whenServing().then(() => {
      hasBegunToServe = true;
    });
    await sleep(20);
    expect(hasBegunToServe).toBe(false);
    gate.open();
    await serving;
    expect(link.isServing).toBe(true);
  });

  it('during an examination makes that one count for nothing', async () => {
    const plan = new Plan();
    const gate = new Gate();
    plan.held = gate.whenOpen;
    const link = open(plan);
    await waitUntil(() => plan.examined === 1);
    const before = link.problem;
    await cutConnections();
    await waitUntil(() => link.problem !== before && link.isConnected);
    plan.examination = UNFIT;
    plan.held = undefined;
    gate.open();
    await waitUntil(() => plan.examined === 2);
    await waitUntil(() => link.problem === 'it evicts');
    expect(link.isServing).toBe(false);
  });

  it('is reported with the code of the system when it is gone, and served again when it is back', async () => {
    const own = await TestRedisServer.start();
    try {
      const link = await openServing(new Plan(), { port: own.port });
      await own.kill();
      await waitUntil(() => link.problem?.includes('(ECONNREFUSED)') === true);
      expect([link.isServing, link.isConnected]).toEqual([false, false]);
      await own.startAgain();
      await waitUntil(() => link.isServing);
    } finally {
      await own.stop();
    }
  });

  it('is reported with the code of the system while it is away', async () => {
    const link = open(new Plan(), { port: await freePort() });
    await waitUntil(() => link.problem?.includes('(ECONNREFUSED)') === true);
    expect([link.isServing, link.isConnected]).toEqual([false, false]);
  });
});

describe('a link whose address leads to another server', () => {
  it('sends nothing more over its connection, and connects again', async () => {
    const plan = new Plan();
    const link = await openServing(plan);
    link.reconnect();
    expect(link.isServing).toBe(false);
    await link.whenServing();
    expect(new Set(plan.clientIds).size).toBe(2);
  });
});

describe('a link whose circumstances changed', () => {
  it('serves nothing more until the next look', async () => {
    const plan = new Plan();
    const link = await openServing(plan);
    link.requalify();
    expect(link.isServing).toBe(false);
    expect(link.problem).toContain(link.label);
    await link.whenServing();
    expect(plan.examined).toBe(2);
  });

  it('does not go by the look that was under way', async () => {
    const plan = new Plan();
    const gate = new Gate();
    plan.held = gate.whenOpen;
    const link = open(plan);
    await waitUntil(() => plan.examined === 1);
    link.requalify();
    plan.held = undefined;
    gate.open();
    await link.whenServing();
    expect(plan.examined).toBe(2);
  });
});

describe('commands', () => {
  const ECHO = redisScript("return redis.call('ECHO', ARGV[1] .. KEYS[1])", 1);

  it('run scripts that the server knows', async () => {
    const link = await openServing();
    await server.command('SCRIPT', 'FLUSH');
    const unknown = await link.runScript(ECHO, ['key', 1]).catch(classifyFault);
    expect(unknown).toEqual({ kind: 'refused', code: 'NOSCRIPT' });
    await link.loadScript(ECHO);
    expect(await link.runScript(ECHO, ['key', 1])).toBe('1key');
  });

  it('run scripts in full, which the server then knows', async () => {
    const link = await openServing();
    await server.command('SCRIPT', 'FLUSH');
    expect(await link.runScriptInFull(ECHO, ['key', 'a'])).toBe('akey');
    expect(await link.runScript(ECHO, ['key', 'b'])).toBe('bkey');
  });

  it('are answered in order, however many leave together', async () => {
    const link = await openServing();
    await link.loadScript(ECHO);
    for (let round = 0; round < 3; round += 1) {
      const answers = Array.from({ length: 50 }, (_, number) => link.runScript(ECHO, ['.', number]));
      expect(await Promise.all(answers)).toEqual(Array.from({ length: 50 }, (_, number) => `${number}.`));
    }
  });

  it('read fields of hashes', async () => {
    const link = await openServing();
    await link.call('HSET', 'hash', 'field', 'value');
    expect([await link.readField('hash', 'field'), await link.readField('hash', 'other')]).toEqual([
      'value',
      null,
    ]);
  });

  it('get no answer when the server does not give one in time', async () => {
    const link = await openServing();
    server.freeze();
    const fault = await link.call('PING').catch(classifyFault);
    server.thaw();
    expect(fault).toEqual({ kind: 'no_answer' });
  });
});

describe('a link that is closed', () => {
  it('serves nothing, says so, and looks no more', async () => {
    const plan = new Plan();
    const link = await openServing(plan, { recheckIntervalMs: 5 });
    await Promise.all([link.close(), link.close()]);
    expect([link.isServing, link.isConnected]).toEqual([false, false]);
    expect(link.problem).toEqual(expect.stringMatching(/./));
    const { examined } = plan;
    link.suspect();
    link.requalify();
    await sleep(50);
    expect(plan.examined).toBe(examined);
  });

  it('answers what is under way', async () => {
    const link = await openServing();
    const answer = link.call('PING');
    await link.close();
    expect(await answer).toBe('PONG');
  });

  it('is closed while it is examined, and stays so', async () => {
    const plan = new Plan();
    const gate = new Gate();
    plan.held = gate.whenOpen;
    const link = open(plan);
    await waitUntil(() => plan.examined === 1);
    await link.close();
    const { problem } = link;
    gate.open();
    await sleep(20);
    expect([link.isServing, link.problem]).toEqual([false, problem]);
  });

  it('leaves no connection behind, whatever the server does', async () => {
    const link = await openServing();
    server.freeze();
    await link.close();
    server.thaw();
    await waitUntil(async () => !(await server.command('CLIENT', 'LIST')).includes('name=proofgate'));
  });
});
