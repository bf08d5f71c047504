/** The broker is not ready while it refuses every request, and ready again by itself when the fault ends. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { softwareKeysYaml } from '../../support/broker/broker-callers.ts';
import { type BrokerProgram, startBrokerProgram } from '../../support/broker/broker-program.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { mountSmallDisk } from '../../support/harness/small-disk.ts';
import { authority, eventually, folder, running, start, workload } from './broker-process-fixture.ts';

/** Names of the checks that fail. */
async function failing(broker: BrokerProgram): Promise<readonly string[]> {
  const { checks, status } = await broker.readiness();
  const names = checks.flatMap(({ name, ok }) => (ok ? [] : name));
  expect(status).toBe(names.length === 0 ? 'ready' : 'not_ready');
  return names;
}

const disk = mountSmallDisk(64, 'a broker on a full disk');
afterAll(() => disk?.remove());

(disk === undefined ? describe.skip : describe)('a full disk', () => {
  const file = join(disk?.path ?? '', 'audit.jsonl');

  it('with --audit required: not ready after a refusal, ready when there is room, without a request', async () => {
    const broker = await start('--audit', 'required', '--audit-file', file);
    const caller = workload();
    expect((await caller.passport(broker.url)).status).toBe(200);
    disk?.fill();
    // The last page of the file still has room for some events.
    await eventually(
      'the refusal',
      async () => (await caller.passport(broker.url)).body.code === 'audit_unavailable',
    );
    expect(await failing(broker)).toEqual(['audit']);
    expect((await caller.passport(broker.url)).body.code).toBe('audit_unavailable');
    disk?.free();
    await eventually('readiness', async () => (await broker.readiness()).status === 'ready');
    expect((await caller.passport(broker.url)).status).toBe(200);
    writeFileSync(file, '');
  });

  it('without it: ready, with a warning', async () => {
    disk?.fill();
    const broker = await start('--audit-file', file);
    expect((await workload().passport(broker.url)).status).toBe(200);
    await eventually('the warning', async () =>
      (await broker.readiness()).checks.some(
        ({ name, warning }) => name === 'audit' && warning?.includes('enospc'),
      ),
    );
    expect(await failing(broker)).toEqual([]);
    disk?.free();
  });
});

it('a FIFO without a reader: not ready until there is one, without a request', async () => {
  const fifo = join(folder.path, 'audit.fifo');
  execFileSync('mkfifo', [fifo]);
  const broker = await startBrokerProgram(folder, {
    flags: ['--audit', 'required', '--audit-file', fifo],
    readyStatus: 503,
  });
  running.push(broker);
  expect(await failing(broker)).toEqual(['audit']);
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await eventually('readiness', async () => (await broker.readiness()).status === 'ready');
    expect((await workload().passport(broker.url)).status).toBe(200);
  } finally {
    closeSync(reader);
  }
});

describe('callers', () => {
  const ended = () => SpiffeAuthority.create('shop.example', { notAfterMs: Date.now() - 1_000 });

  it('not ready with an authority that has ended, ready with the next one, not ready once that is gone', async () => {
    const old = ended();
    await folder.put('bundle.pem', old.pem);
    const broker = await startBrokerProgram(folder, { readyStatus: 503 });
    running.push(broker);
    expect(await failing(broker)).toEqual(['callers']);
    expect((await workload(old).passport(broker.url)).status).toBe(401);
    await folder.put('bundle.pem', authority.pem);
    await eventually('readiness', async () => (await broker.readiness()).status === 'ready');
    expect((await workload().passport(broker.url)).status).toBe(200);
    await folder.put('bundle.pem', old.pem);
    await eventually('the end', async () => (await failing(broker)).includes('callers'));
    expect((await workload().passport(broker.url)).status).toBe(401);
  });

  it('ready while a software key can be served, whatever the trust bundle', async () => {
    await folder.put('bundle.pem', ended().pem);
    const key = softwareKeysYaml(newSigningKey(), 'ci:deploy');
    const broker = await start('--software-keys', await folder.put('software-keys.yaml', key));
    await folder.put('software-keys.yaml', 'keys: []');
    await eventually('the last key to go', async () => (await failing(broker)).includes('callers'));
    await folder.put('software-keys.yaml', key);
    await eventually('readiness', async () => (await broker.readiness()).status === 'ready');
  });
});
