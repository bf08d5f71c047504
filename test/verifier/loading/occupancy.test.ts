/** Who is at work in a directory, told by a socket. */
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { isOccupied, type Occupancy, occupy } from '../../../src/verifier/loading/state/occupancy.ts';

let directory = '';
const open: Occupancy[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-occupancy-'));
});
afterEach(async () => {
  for (const occupancy of open.splice(0)) await occupancy.release();
  await rm(directory, { recursive: true, force: true });
});

async function occupied(prefix?: string): Promise<Occupancy> {
  const occupancy = await occupy(directory, prefix);
  open.push(occupancy);
  return occupancy;
}

it('is shared with whoever is at the same work', async () => {
  const first = await occupied('.key.pem.agent-');
  expect(await first.isShared()).toBe(false);
  await occupied('.other.pem.agent-');
  await occupied();
  expect(await first.isShared()).toBe(false);
  const second = await occupied('.key.pem.agent-');
  expect([await first.isShared(), await second.isShared()]).toEqual([true, true]);
  await second.release();
  expect(await first.isShared()).toBe(false);
});

it('of another kind is no verifier', async () => {
  await occupied('.key.pem.agent-');
  expect(await isOccupied(directory)).toBe(false);
  await occupied();
  expect(await isOccupied(directory)).toBe(true);
});

it('does not count what somebody who was killed left behind', async () => {
  const left = '.key.pem.agent-0123456789abcdef';
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(directory, 'socket'), resolve));
  await rename(join(directory, 'socket'), join(directory, left));
  await new Promise((resolve) => server.close(resolve));
  const own = await occupied('.key.pem.agent-');
  expect(await own.isShared()).toBe(false);
  expect(await readdir(directory)).not.toContain(left);
});
