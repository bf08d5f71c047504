/** What our signers sign with DPoP, through the reverse proxy and a relay that counts: one retry for a nonce, never a loop. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { KeyFileIdentity } from '../../../src/caller/enroll/key-file-identity.ts';
import { RequestSigner } from '../../../src/caller/sign/request-signer.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { ORIGIN, writeBillingKey } from '../../caller/sdk/billing-key.ts';
import { useEgress } from '../../support/caller/egress-fixture.ts';
import { NonceRelay } from '../../support/caller/nonce-relay.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { startRecordedProxy } from '../proxy/proxy-fixture.ts';
import { NONCED, WRITE } from './dpop-requests.ts';

const fixture = useSite('suite');
const egressTo = useEgress();
const READ_URL = `${ORIGIN}/v1/nonced/4711`;
const WRITE_URL = `${ORIGIN}/v1/dpop?dry=1`;
const BODY = '{"item":"book"}';
const NONCED_WRITE = { ...WRITE, dpop_nonce: 'required' } as const;

let folder = '';
let keyFile = '';
let relay: NonceRelay;
beforeAll(async () => {
  const moreRoutes = [NONCED, NONCED_WRITE];
  const bundleDirectory = await fixture.site.makeBundle({ moreRoutes });
  const proxy = await startRecordedProxy(fixture.site, { bundleDirectory });
  fixture.stops.push(() => proxy.stop());
  relay = await NonceRelay.start(proxy.address);
  fixture.stops.push(() => relay.stop());
  folder = mkdtempSync(join(fixture.site.directory, 'dpop'));
  keyFile = writeBillingKey(fixture.site, folder, { keyId: 'dk_billing', routes: moreRoutes });
  // A replay store that has just started refuses proofs of its past.
  await waitFor('an allowed request', async () => (await proofgate('GET', READ_URL))[0] === 0 || undefined);
});
beforeEach(() => {
  relay.alwaysAsks = false;
  relay.take();
});

const statuses = () => relay.take().map(({ status }) => status);

async function proofgate(...args: readonly string[]) {
  const { host, port } = relay.address;
  const flags = ['--key', keyFile, '--proof', 'dpop', '--connect-to', `${host}:${port}`];
  const { exitCode, stderr } = await runInProcess(['request', ...args, ...flags]);
  return [exitCode, stderr];
}

describe('proofgate request', () => {
  it('signs once more with the nonce of the denial', async () => {
    expect(await proofgate('GET', READ_URL)).toEqual([0, '']);
    const [denied, allowed, ...others] = relay.take();
    expect([denied?.status, allowed?.status, others]).toEqual([401, 200, []]);
    expect(denied?.nonce).toBeUndefined();
    expect(allowed?.nonce).toBe(denied?.given);
  });

  it('begins with a nonce that it is given, and replaces a stale one', async () => {
    await proofgate('GET', READ_URL);
    const { nonce = '' } = relay.take()[1] ?? {};
    await proofgate('GET', READ_URL, '--dpop-nonce', nonce);
    expect(statuses()).toEqual([200]);
    expect(await proofgate('GET', READ_URL, '--dpop-nonce', 'stale')).toEqual([0, '']);
    expect(statuses()).toEqual([401, 200]);
  });

  it('sends the body again', async () => {
    const bodyFile = join(folder, 'order.json');
    writeFileSync(bodyFile, BODY);
    expect(await proofgate('POST', WRITE_URL, '--body-file', bodyFile, '--header', 'X-Tenant: acme')).toEqual(
      [0, ''],
    );
    expect(relay.take().map(({ body, status }) => [status, body])).toEqual([
      [401, BODY],
      [200, BODY],
    ]);
  });

  it('shows the denial of a server that always asks', async () => {
    relay.alwaysAsks = true;
    const [exitCode, stderr] = await proofgate('GET', READ_URL);
    expect([exitCode, statuses()]).toEqual([3, [401, 401]]);
    expect(stderr).toContain('invalid_request_proof');
  });
});

describe('the egress proxy', () => {
  const engine = async () => {
    const signer = new RequestSigner({ proof: 'dpop' });
    signer.replaceIdentity(await new KeyFileIdentity(keyFile).current());
    return signer;
  };
  async function open() {
    const { host, port } = relay.address;
    const egress = await egressTo(`http://${host}:${port}`, fixture.site, { signer: await engine() });
    const client = http1Client(egress.address);
    const authority = `${egress.address.host}:${egress.address.port}`;
    const read = async () =>
      (await client.send({ method: 'GET', authority, target: READ_URL.slice(ORIGIN.length), headers: [] }))
        .status;
    const write = async (body: string) => {
      const headers = [['x-tenant', 'acme']] as const;
      return (
        await client.send({
          method: 'POST',
          authority,
          target: WRITE_URL.slice(ORIGIN.length),
          headers,
          body: Buffer.from(body),
        })
      ).status;
    };
    return { egress, read, write };
  }

  it('signs once more for a nonce, keeps it, and takes a newer one of any answer', async () => {
    const { egress, read } = await open();
    expect([await read(), statuses()]).toEqual([200, [401, 200]]);
    relay.nextNonces.push('stale');
    expect([await read(), statuses()]).toEqual([200, [200]]);
    expect(await read()).toBe(200);
    const [denied, allowed] = relay.take();
    expect([denied?.nonce, denied?.status, allowed?.status]).toEqual(['stale', 401, 200]);
    expect(egress.signed.length).toBe(5);
  });

  it.each([
    ['in memory', 10],
    ['in a file', 200_000],
  ])('sends a body again: %s', async (_, size) => {
    const { egress, write } = await open();
    const body = 'x'.repeat(size);
    expect(await write(body)).toBe(200);
    expect(relay.take().map((each) => [each.status, each.body === body])).toEqual([
      [401, true],
      [200, true],
    ]);
    expect([await egress.spooledFiles(), egress.internalErrors]).toEqual([[], []]);
  });

  it('hands on the denial of a server that always asks', async () => {
    relay.alwaysAsks = true;
    const { read } = await open();
    expect([await read(), statuses()]).toEqual([401, [401, 401]]);
  });
});
