/** Tests ports that two test processes draw at once, and a port that is taken. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, it } from '@jest/globals';
import { portsOf } from './free-port.ts';

/**
 * Shares that no test process uses. A probe occupies a port for a moment, so it must not hit a port that another program is
 * about to use.
 */
const UNUSED = [0, 3] as const;

it('draws no port twice, in one process or in two', async () => {
  const [one, other] = UNUSED.map(portsOf) as [() => Promise<number>, () => Promise<number>];
  const drawn: number[] = [];
  for (let count = 0; count < 200; count += 1) drawn.push(await one(), await other());
  expect(new Set(drawn).size).toBe(drawn.length);
});

it('passes over a port that is taken', async () => {
  const draw = portsOf(UNUSED[0]);
  const taken = (await draw()) + 1;
  const server = createServer().listen(taken, '127.0.0.1');
  await once(server, 'listening');
  try {
    expect(await draw()).not.toBe(taken);
  } finally {
    server.close();
  }
});
