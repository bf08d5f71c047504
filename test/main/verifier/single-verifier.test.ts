/** Tests `--replay memory`: it accepts only bundles for a single verifier, at start and on each reload. */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { runInProcess, startInProcess } from '../../cli/in-process.ts';
import { httpGet } from '../../e2e/harness/wait.ts';
import { AUTH_SITE, bundleContent, edited, newTestKeys } from '../../fakes/bundle-content.ts';
import { freePort } from '../../fakes/free-port.ts';
import { waitUntil } from '../../fakes/redis-server.ts';

const TIMEOUT_MS = 60_000;
const content = bundleContent(newTestKeys());

let folder = '';
const at = (name: string) => join(folder, name);

/** Signs the next revision into a separate folder. */
async function sign(name: string, singleVerifier: boolean, previous?: string): Promise<void> {
  const setBySigning = [{ at: '/revision' }, { at: '/issued_at' }, { at: '/expires_at' }];
  const written = edited({ ...content, single_verifier: singleVerifier }, ...setBySigning);
  await writeFile(at('bundle.yaml'), stringify(written));
  const chained = previous === undefined ? [] : ['--previous', at(previous)];
  const signed = await runInProcess([
    ...['bundle', 'sign', at('bundle.yaml'), '--key', at('key.pem'), '--out', at(name), ...chained],
  ]);
  expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-single-'));
  await runInProcess(['keygen', '--out', at('key.pem'), '--public-out', at('key.jwk.json')]);
  await sign('first', false);
  await sign('second', true, 'first');
  await sign('third', false, 'second');
  await mkdir(at('state'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it(
  'refuses others at the start and at a reload, and goes on with the one that it has',
  async () => {
    const admin = `127.0.0.1:${await freePort()}`;
    const replace = (name: string) => cp(at(name), at('live'), { recursive: true });
    const show = async (path: string, name: string) => {
      const { text } = await httpGet(`http://${admin}${path}`);
      return text.split('\n').find((line) => !line.startsWith('#') && line.includes(name)) ?? '';
    };
    const revision = () => show('/metrics', 'proofgate_bundle_revision ');
    const refused = async () => (await show('/readyz', 'bundle')).includes('refused_by_policy');
    await replace('first');
    const running = startInProcess([
      ...['verifier', '--auth-site', AUTH_SITE, '--state-dir', at('state'), '--replay', 'memory'],
      ...['--bundle', at('live'), '--bundle-key', at('key.jwk.json'), '--audit-file', at('audit.jsonl')],
      ...['--listen', `unix:${at('socket')}`, '--admin-listen', admin, '--log-level', 'silent'],
    ]);
    try {
      await waitUntil(() => refused().catch(() => false));
      expect(await revision()).toBe('proofgate_bundle_revision 0');
      await replace('second');
      await waitUntil(async () => (await revision()) === 'proofgate_bundle_revision 2');
      expect(await refused()).toBe(false);
      await replace('third');
      await waitUntil(refused);
      expect(await revision()).toBe('proofgate_bundle_revision 2');
    } finally {
      process.emit('SIGTERM', 'SIGTERM');
      expect(await running.ended).toMatchObject({ exitCode: 0, stderr: '' });
    }
  },
  TIMEOUT_MS,
);
