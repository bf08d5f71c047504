/** Tests the shipped `proofgate verifier --control-url`, which follows a Control over TLS. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LAUNCHER } from '../../../support/cli/compiled-cli.ts';
import { type FakeControl, startFakeControl } from '../../../support/fakes/control-distribution.ts';
import { AUTH_SITE } from '../../../support/fixtures/bundle-content.ts';
import { newEnrolledSite, wallClockSeconds } from '../../../support/fixtures/enrolled-site.ts';
import { makeCertificates, type TestCertificates } from '../../../support/harness/certificates.ts';
import { type CheckClient, openCheckClient } from '../../../support/harness/check-client.ts';
import { type Child, startChild } from '../../../support/harness/child.ts';
import { httpGet, waitFor } from '../../../support/wait.ts';

const TOKEN = 'target-token-that-must-show-nowhere';
const site = newEnrolledSite();
const { keyEntry } = site;

let certificates: TestCertificates;
let folder: string;
let control: FakeControl;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pg-follow-'));
  certificates = await makeCertificates('localhost', 'spiffe://shop.example/x', ['127.0.0.1']);
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'token'), `${TOKEN}\n`);
  await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(site.signer.publicKey.jwk));
  const tls = { key: certificates.server.key, cert: certificates.server.cert };
  control = await startFakeControl({
    authSite: AUTH_SITE,
    signer: site.signer,
    nowSeconds: wallClockSeconds,
    token: TOKEN,
    tls,
  });
  control.publishWhole(site.content({ single_verifier: true }));
});
afterAll(async () => {
  await control?.close();
  await certificates?.remove();
  await rm(folder, { recursive: true, force: true });
});

interface Verifier {
  readonly child: Child;
  readonly admin: string;
  readonly client: CheckClient;
}

const running: Verifier[] = [];

async function startVerifier(caFile = certificates.ca.certPath): Promise<Verifier> {
  const args = [
    ...[LAUNCHER, 'verifier', '--auth-site', AUTH_SITE, '--bundle-key', join(folder, 'key.jwk.json')],
    ...['--state-dir', join(folder, 'state'), '--replay', 'memory', '--log-level', 'trace'],
    ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
    ...['--control-url', control.url, '--control-token-file', join(folder, 'token')],
    ...['--control-ca-file', caFile],
  ];
  const child = startChild({ command: process.execPath, args });
  const [line = ''] = await child.waitForLine(/^.*"msg":"listening".*$/);
  const { admin_listen: admin, listen } = JSON.parse(line);
  const verifier = { child, admin: `http://${admin}`, client: openCheckClient(listen) };
  running.push(verifier);
  return verifier;
}

async function stopVerifier({ child, client }: Verifier): Promise<void> {
  client.close();
  expect(await child.stop()).toEqual({ code: 0, signal: null });
}

const becomes = (verifier: Verifier, wanted: RegExp) =>
  waitFor(`a request to be ${wanted}`, async () => {
    const outcome = await site.outcome(verifier.client);
    if (!wanted.test(outcome)) throw new Error(outcome);
    return true;
  });

async function becomesReady({ admin }: Verifier): Promise<string> {
  return waitFor('/readyz to answer 200', async () => {
    const { status, text } = await httpGet(`${admin}/readyz`);
    if (status !== 200) throw new Error(text);
    return text;
  });
}

async function metric({ admin }: Verifier, pattern: RegExp): Promise<number> {
  const { text } = await httpGet(`${admin}/metrics`);
  return Number(pattern.exec(text)?.[1]);
}

describe('a verifier that has nothing but Control', () => {
  let verifier: Verifier;

  it('gets its bundle, a key as it is enrolled, and its revocation', async () => {
    verifier = await startVerifier();
    await becomes(verifier, /key_unknown/);
    control.publishDelta({ keys_put: [keyEntry('active')] });
    await becomes(verifier, /^allowed$/);
    const position = control.publishDelta({ keys_put: [keyEntry('revoked')] });
    await becomes(verifier, /key_revoked/);
    await waitFor('the acknowledgement', async () =>
      control.acknowledgements.some(
        ({ revision, outcome: what }) => revision === position.revision && what === 'accepted',
      )
        ? true
        : undefined,
    );
    expect(await metric(verifier, /^proofgate_bundle_revision (\d+)$/m)).toBe(position.revision);
    expect(await metric(verifier, /^proofgate_bundle_steps_total\{kind="delta"\} (\d+)$/m)).toBe(2);
    expect(
      await metric(verifier, /^proofgate_control_last_contact_timestamp_seconds (\S+)$/m),
    ).toBeGreaterThan(0);
    await becomesReady(verifier);
  });

  it('goes on without Control, and says so; a token that was rotated is taken up', async () => {
    control.token = `${TOKEN}-rotated`;
    control.freshen();
    const seen = await waitFor('the warning', async () => {
      const { text } = await httpGet(`${verifier.admin}/readyz`);
      return text.includes('control_unauthorized') ? text : undefined;
    });
    expect(seen).toContain('control');
    await becomesReady(verifier);
    await writeFile(join(folder, 'token'), `${TOKEN}-rotated\n`);
    control.publishDelta({ keys_put: [keyEntry('active')] });
    await becomes(verifier, /^allowed$/);
    expect(
      await metric(
        verifier,
        /^proofgate_control_failures_total\{activity="poll",code="control_unauthorized"\} (\d+)$/m,
      ),
    ).toBeGreaterThan(0);
  });

  it('killed, comes up from its state directory while Control is away, and follows again', async () => {
    const { port } = control;
    await control.close();
    verifier.client.close();
    verifier.child.signal('SIGKILL');
    await verifier.child.exited;
    verifier = await startVerifier();
    await becomes(verifier, /^allowed$/);
    expect(await becomesReady(verifier)).toContain('control_unreachable');
    await control.listen(port);
    control.publishDelta({ keys_removed: ['dk_enrolled'] });
    await becomes(verifier, /key_unknown/);
    await stopVerifier(verifier);
  });

  it('trusts no other Control than the one of --control-ca-file', async () => {
    const others = await makeCertificates('localhost', 'spiffe://shop.example/x');
    const stranger = await startVerifier(others.ca.certPath);
    const line = await stranger.child.waitForLine(/"code":"control_unreachable".*$/);
    expect(line[0]).toMatch(/CERT|SIGNATURE|ISSUER/);
    await stopVerifier(stranger);
    await others.remove();
  });

  it('shows its token nowhere', async () => {
    const texts = running.flatMap(({ child }) => [...child.stderrLines, ...child.stdoutLines]);
    for (const entry of await readdir(join(folder, 'state'), { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) texts.push(await readFile(join(entry.parentPath, entry.name), 'utf8'));
    }
    expect(texts.some((text) => text.includes('bundle loaded'))).toBe(true);
    expect(texts.filter((text) => text.includes(TOKEN))).toEqual([]);
  });
});
