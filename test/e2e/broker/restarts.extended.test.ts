/**
 * A broker that is killed and restarted under load: the shipped broker and agent as processes, and callers that sign with the
 * agent's files. Requests go on while the passports live.
 */
import { mkdir, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { readLocalCaller } from '../../../src/cli/signing/signing-caller.ts';
import { signerFor } from '../../../src/cli/signing/signing-inputs.ts';
import { readSigningKeyFile } from '../../../src/process/files/key-files.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { decide } from '../../../src/verifier/decision/decide.ts';
import { createPassportCache } from '../../../src/verifier/decision/facts/passport-cache.ts';
import { softwareKeysYaml } from '../../support/broker/broker-callers.ts';
import {
  type BrokerFolder,
  type BrokerProgram,
  makeBrokerFolder,
  startBrokerProgram,
} from '../../support/broker/broker-program.ts';
import {
  factsOf,
  profileDocument,
  requestOf,
  routeDocument,
  signRequest,
} from '../../support/caller/signing.ts';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { bundleContent, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { waitFor } from '../../support/wait.ts';

const ISSUER = 'https://broker.shop.example';
const SUBJECT = 'job:nightly';
const CONNECTIONS = 3;
const PAUSE_MS = 50;
const KILLS = Number(process.env.PROOFGATE_TEST_KILLS ?? 3);
/** Renewed at 16 s, so that a broker has 8 s to return. */
const PASSPORT_TTL_SECONDS = 24;

let folder: BrokerFolder;
let snapshot: Snapshot;
let broker: BrokerProgram;
let agent: Child;
let flags: readonly string[] = [];
const keyFile = () => join(folder.path, 'agent', 'key.pem');

beforeEach(async () => {
  folder = await makeBrokerFolder(SpiffeAuthority.create('shop.example'));
  for (const name of ['agent', 'profiles']) await mkdir(join(folder.path, name));
  const registered = join(folder.path, 'registered.pem');
  await runInProcess(['keygen', '--out', registered]);
  const { key_id: _none, ...profile } = profileDocument({
    ...{ issuer: ISSUER, subject: SUBJECT },
    profiles: [routeDocument({ route_id: 'orders-read' })],
  });
  await folder.put('profiles/job.json', JSON.stringify(profile));
  const softwareKeys = await folder.put(
    'software-keys.yaml',
    softwareKeysYaml(await readSigningKeyFile(registered), SUBJECT),
  );
  flags = [
    ...['--issuer', ISSUER, '--software-keys', softwareKeys, '--profiles', join(folder.path, 'profiles')],
    ...['--passport-ttl', `${PASSPORT_TTL_SECONDS}s`],
  ];
  broker = await startBrokerProgram(folder, { flags });
  snapshot = await siteThatTrustsTheBroker();
  agent = startChild({
    command: process.execPath,
    args: [
      ...[LAUNCHER, 'agent', '--broker-url', broker.url, '--broker-ca-file', folder.tls.ca.certPath],
      ...['--key', registered, '--private-key-out', keyFile(), '--admin-listen', '127.0.0.1:0'],
    ],
  });
  await agent.waitForLine(/"event":"passport_renewed"/);
});
afterEach(async () => {
  await agent.stop();
  await broker.child.stop();
  await folder.remove();
});

async function siteThatTrustsTheBroker(): Promise<Snapshot> {
  const directory = join(folder.keyDir, 'shop.example');
  const name = (await readdir(directory)).find((candidate) => candidate.endsWith('.pem')) ?? '';
  const { publicKey } = await readSigningKeyFile(join(directory, name));
  const content = bundleContent(newTestKeys());
  const nowSeconds = Math.floor(Date.now() / 1000);
  return compileBundle(
    {
      ...content,
      ...{ issued_at: formatTime(nowSeconds), expires_at: formatTime(nowSeconds + 3600) },
      ...{ clients: [], derived_keys: [], routes: content.routes.slice(0, 1) },
      issuers: [
        {
          ...{ issuer: ISSUER, trust_domain: 'shop.example', key_binding: 'software' },
          subject_prefixes: ['job:'],
          keys: [{ kid: basename(name, '.pem'), alg: publicKey.algorithm, jwk: publicKey.jwk }],
        },
      ],
      route_sources: [
        {
          route_id: 'orders-read',
          allowed_sources: [
            {
              ...{ issuer: ISSUER, trust_domain: 'shop.example', subject_exact: SUBJECT },
              required_key_binding: 'software',
            },
          ],
        },
      ],
    },
    { file: 'bundle', head: 'A'.repeat(43) },
  );
}

const passports = createPassportCache();

/** Signs one request as `proofgate request` does, and has it verified: `verified`, or why not. */
async function requestOnce(): Promise<string> {
  try {
    const caller = await readLocalCaller({ key: keyFile(), profileFile: undefined, passportFile: undefined });
    const request = requestOf();
    const signer = await signerFor(request, caller);
    const nowSeconds = Math.floor(Date.now() / 1000);
    const signed = signRequest(request, { ...signer, ttlSeconds: 60, nowSeconds });
    const inputs = { nowSeconds, realtimeStalenessSeconds: 10, passports };
    const verdict = decide(factsOf(request, signed), snapshot, inputs, {});
    return verdict.kind === 'verified' ? 'verified' : `${verdict.reason} ${verdict.detail}`;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

class Load {
  readonly refused: string[] = [];
  verified = 0;
  #isRunning = true;
  readonly #senders = Array.from({ length: CONNECTIONS }, () => this.#send());

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#senders);
  }

  async #send(): Promise<void> {
    while (this.#isRunning) {
      const outcome = await requestOnce();
      if (outcome === 'verified') this.verified += 1;
      else this.refused.push(outcome);
      await sleep(PAUSE_MS);
    }
  }
}

const countOf = (event: string) =>
  agent.stderrLines.filter((line) => line.includes(`"event":"${event}"`)).length;

function nextOf(event: string): Promise<number> {
  const before = countOf(event);
  return waitFor(`another ${event}`, () => (countOf(event) > before ? countOf(event) : undefined));
}

async function killBroker(): Promise<void> {
  broker.child.signal('SIGKILL');
  expect(await broker.child.exited).toEqual({ code: null, signal: 'SIGKILL' });
}

async function restartBroker(): Promise<void> {
  broker = await startBrokerProgram(folder, { flags, port: Number(new URL(broker.url).port) });
}

it(`no request is refused when the broker is killed ${KILLS} times, and away when passports are due`, async () => {
  const load = new Load();
  for (let kill = 0; kill < KILLS; kill++) {
    await killBroker();
    await nextOf('passport_failed');
    const renewed = nextOf('passport_renewed');
    await restartBroker();
    await renewed;
  }
  await load.stop();
  expect(load.refused).toEqual([]);
  expect(load.verified).toBeGreaterThan(KILLS * 100);
}, 600_000);

it('a broker that stays away ends requests with the passport, and no later than that; its return begins them again', async () => {
  await killBroker();
  const load = new Load();
  await waitFor('the passport to end', () => load.refused[0]);
  await load.stop();
  expect(load.verified).toBeGreaterThan(100);
  expect([...new Set(load.refused)]).toEqual(['passport_expired']);
  await restartBroker();
  expect(
    await waitFor('a request to pass', async () => {
      const outcome = await requestOnce();
      return outcome === 'verified' ? outcome : undefined;
    }),
  ).toBe('verified');
});
