/** Tests `proofgate control` on a full disk: it is not ready until the disk accepts writes again. */
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from '@jest/globals';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import {
  type ControlProgram,
  readBootstrapToken,
  startControlProgram,
} from '../../support/control/control-program.ts';
import { mountSmallDisk } from '../../support/harness/small-disk.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

const TEST_TIMEOUT_MS = 60_000;

let program: ControlProgram | undefined;

afterEach(async () => {
  await program?.child.stop();
  program = undefined;
});

const disk = mountSmallDisk(8 * 1024, "Control's readiness on a full file system");
afterAll(() => disk?.remove());

async function start(dataDirectory: string): Promise<ControlProgram> {
  await mkdir(dataDirectory);
  program = await startControlProgram({ launcher: LAUNCHER, dataDirectory });
  return program;
}

/** Statuses of `/readyz` at both addresses. */
async function readiness({ url, adminUrl }: ControlProgram): Promise<readonly number[]> {
  const answers = await Promise.all([url, adminUrl].map((base) => httpGet(`${base}/readyz`)));
  return answers.map(({ status }) => status);
}

async function expectReadiness(control: ControlProgram, status: number): Promise<void> {
  await waitFor(`/readyz to say ${status}`, async () =>
    (await readiness(control)).every((one) => one === status) ? true : undefined,
  );
}

async function expectUnreadyWhile(control: ControlProgram, dataDirectory: string, disk: Disk): Promise<void> {
  const token = await readBootstrapToken(dataDirectory);
  const create = (name: string) =>
    control.call({ method: 'POST', path: '/v1/environments', token, body: { name } });
  disk.fill();
  await expectReadiness(control, 503);
  expect(await create('full')).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  expect((await control.call({ path: '/v1/environments', token })).status).toBe(200);
  expect((await httpGet(`${control.adminUrl}/readyz`)).text).toContain('takes no writes');
  disk.free();
  await expectReadiness(control, 200);
  expect((await create('free')).status).toBe(201);
}

interface Disk {
  fill(): void;
  free(): void;
}

/** Simulates a full disk without privileges: limits the size of files (RLIMIT_FSIZE). */
function growthLimit(pid: number): Disk {
  const limit = (bytes: string) => {
    const { status } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
    expect(status).toBe(0);
  };
  return { fill: () => limit('0'), free: () => limit('unlimited') };
}

it('is not ready while its files cannot grow, and ready again when they can', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'proofgate-control-'));
  const data = join(folder, 'data');
  const control = await start(data);
  await expectUnreadyWhile(control, data, growthLimit(control.child.pid));
  await control.child.stop();
  await rm(folder, { recursive: true });
});

(disk === undefined ? it.skip : it)(
  'is not ready on a full file system, and ready again when there is room',
  async () => {
    if (disk === undefined) return;
    const data = join(disk.path, 'data');
    await expectUnreadyWhile(await start(data), data, disk);
  },
  TEST_TIMEOUT_MS,
);
