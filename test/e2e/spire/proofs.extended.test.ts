/**
 * Passports for workloads of real SPIRE by each proof, and both classes of signers at one route of a real verifier.
 * Source: docs/operate/broker.md "Proofs"; specification "Workload identity".
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { freePort } from '../../support/harness/free-port.ts';
import { errorCode, runProofgate } from '../../support/harness/proofgate-command.ts';
import { startProofgate } from '../../support/harness/sidecar.ts';
import { SOFTWARE_SUBJECT, SOFTWARE_SUBJECT_TOO_WEAK } from './broker-site.ts';
import { type BrokerStage, useBrokerStages } from './broker-stage.ts';
import { showSvid } from './shown-svid.ts';
import { type StartedSpire, TRUST_DOMAIN, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

const CHECKOUT = '/ns/prod/sa/checkout';
const BROKER = '/ns/prod/sa/broker';
/** Its SPIFFE ID is not among those that the route's rule takes. */
const STAGING = '/ns/staging/sa/checkout';
const PROOFS = ['mtls', 'signed_form', 'jwt_svid'] as const;

describeWithSpire('a workload of SPIRE', () => {
  const spire = useSpire();
  const startStage = useBrokerStages();
  let started: StartedSpire;
  let stage: BrokerStage;

  beforeAll(async () => {
    const entries = [CHECKOUT, BROKER, STAGING].map((path) => ({ path }));
    started = await spire.start(entries, { svidTtlSeconds: 600 });
    stage = await startStage({
      trustDomains: [TRUST_DOMAIN],
      workloads: [started.server.id(CHECKOUT), started.server.id(STAGING)],
      brokerFlags: ['--spiffe-socket', started.agent.endpoint, '--accept-jwt-svid'],
    });
  });

  /** As the workload of that path. */
  const request = (path: string, ...flags: readonly string[]) =>
    stage.request('--spiffe-socket', started.agent.endpoint, '--svid-id', started.server.id(path), ...flags);

  it.each(PROOFS)('passes as an attested workload (%s)', async (proof) => {
    expect(await request(CHECKOUT, '--broker-proof', proof)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(stage.lastCaller()).toEqual({
      subject: [started.server.id(CHECKOUT)],
      keyBinding: ['attested_workload'],
    });
  });

  it.each(PROOFS)('is denied where no rule takes its SPIFFE ID (%s)', async (proof) => {
    const { exitCode, stdout } = await request(STAGING, '--broker-proof', proof);
    expect([exitCode, reasonIn(stdout)]).toEqual([3, 'source_subject_mismatch']);
  });

  it('passes through a signer that keeps its passports', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pg-spire-signer-'));
    const [port, adminPort] = [await freePort(), await freePort()];
    const signer = await startProofgate(
      [
        ...['signer', '--private-key-out', join(folder, 'key.pem'), ...stage.callerFlags],
        ...['--spiffe-socket', started.agent.endpoint, '--svid-id', started.server.id(CHECKOUT)],
        ...['--listen', `127.0.0.1:${port}`, '--upstream', new URL(stage.url).origin],
        ...['--admin-listen', `127.0.0.1:${adminPort}`],
      ],
      { readyUrl: () => `http://127.0.0.1:${adminPort}/readyz` },
    );
    try {
      const { status } = await fetch(`http://127.0.0.1:${port}${new URL(stage.url).pathname}`);
      expect(status).toBe(200);
      expect(stage.lastCaller()).toEqual({
        subject: [started.server.id(CHECKOUT)],
        keyBinding: ['attested_workload'],
      });
    } finally {
      await signer.stop();
      await rm(folder, { recursive: true });
    }
  });

  it('must choose among several SVIDs', async () => {
    const { exitCode, stderr } = await stage.request('--spiffe-socket', started.agent.endpoint);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('svid_ambiguous')]);
  });

  it('passes at the route that a software key of the broker passes, too', async () => {
    const file = stage.site.softwareKeyFile(SOFTWARE_SUBJECT);
    expect(await stage.request('--key', file)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(stage.lastCaller()).toEqual({ subject: [SOFTWARE_SUBJECT], keyBinding: ['software'] });
  });

  it('is not what a software key can be: insufficient_key_binding', async () => {
    const { exitCode, stdout } = await stage.request(
      ...['--key', stage.site.softwareKeyFile(SOFTWARE_SUBJECT_TOO_WEAK)],
    );
    expect([exitCode, reasonIn(stdout)]).toEqual([3, 'insufficient_key_binding']);
  });

  it('with an RSA SVID passes by the signed form, which mTLS falls back to', async () => {
    const { server } = started;
    const agent = await spire.agent(server, { svidKeyType: 'rsa-2048' });
    await server.createEntry({ path: CHECKOUT, agentPath: agent.path });
    await agent.waitForId(server.id(CHECKOUT));
    for (const flags of [[], ['--broker-proof', 'signed_form']]) {
      expect(await stage.request('--spiffe-socket', agent.endpoint, ...flags)).toMatchObject({
        exitCode: 0,
        stderr: '',
      });
      expect(stage.lastCaller().keyBinding).toEqual(['attested_workload']);
    }
  });

  it("gets no passport with the SVID of SPIRE's agent", async () => {
    const shown = showSvid(stage, await started.agent.ownSvid());
    expect(await shown.passport()).toEqual({ status: 403, code: 'svid_reserved_id' });
    shown.close();
  });

  it("takes a broker that has an SVID by its SPIFFE ID, and no other one's", async () => {
    const { agent, server } = started;
    const { chainPath, keyPath } = await agent.x509Svid(server.id(BROKER));
    await stage.broker.stop();
    await stage.startBrokerAgain({ certPath: chainPath, keyPath });
    const requestFrom = (brokerId: string) =>
      runProofgate([
        ...['request', 'GET', stage.url, '--broker-url', stage.broker.url, '--broker-spiffe-id', brokerId],
        ...['--spiffe-socket', agent.endpoint, '--svid-id', server.id(CHECKOUT)],
      ]);
    expect(await requestFrom(server.id(BROKER))).toMatchObject({ exitCode: 0, stderr: '' });
    const other = await requestFrom(server.id(CHECKOUT));
    expect([other.exitCode, errorCode(other)]).toEqual([5, 'unreachable']);
  });
});

/** The reason of a denial's problem document. */
function reasonIn(body: string): string | undefined {
  return /"reason":"([a-z_]+)"/.exec(body)?.[1];
}
