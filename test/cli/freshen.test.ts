import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { runInProcess, startInProcess } from '../support/cli/in-process.ts';
import { waitUntil } from '../support/wait.ts';

const BUNDLE = `
format: proofgate.bundle/v1
auth_site: shop-eu-1
origins: ["https://api.shop.example"]
routes: []
route_sources: []
`;

let folder = '';
const inFolder = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-freshen-'));
  await writeFile(inFolder('bundle.yaml'), BUNDLE);
  await runInProcess(['keygen', '--out', inFolder('key.pem')]);
  const sign = [
    'bundle',
    'sign',
    inFolder('bundle.yaml'),
    '--key',
    inFolder('key.pem'),
    '--out',
    inFolder('out'),
  ];
  expect(await runInProcess(sign)).toMatchObject({ stderr: '', exitCode: 0 });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('freshens again and again, outlives a failure, and ends on a signal', async () => {
  const args = ['bundle', 'freshen', inFolder('out'), '--key', inFolder('key.pem'), '--every', '1s'];
  const running = startInProcess(args);
  await waitUntil(() => running.stdout().includes('revision 1'));
  await rename(inFolder('out'), inFolder('away'));
  await waitUntil(() => running.stderr().includes('error: file_missing: '));
  await rename(inFolder('away'), inFolder('out'));
  await waitUntil(() => running.stdout().split('revision 1').length === 3);
  process.emit('SIGTERM', 'SIGTERM');
  expect(await running.ended).toMatchObject({ exitCode: 0 });
});
