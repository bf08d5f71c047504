/**
 * SPIRE's entry of a workload is deleted: the SVID that is left gets passports until it ends, and nothing after that, also
 * on a connection from before.
 * Source: docs/operate/broker.md "Attacks".
 */
import { X509Certificate } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { waitFor } from '../../support/wait.ts';
import { useBrokerStages } from './broker-stage.ts';
import { PASSPORT, showSvid } from './shown-svid.ts';
import { TRUST_DOMAIN, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

const CHECKOUT = '/ns/prod/sa/checkout';
/** Keeps the broker's Workload API open when the other entry is gone. */
const BROKER = '/ns/prod/sa/broker';
const SVID_TTL_SECONDS = 15;

describeWithSpire('a workload whose entry is deleted', () => {
  const spire = useSpire();
  const startStage = useBrokerStages();

  it('gets passports until its SVID ends, no longer', async () => {
    const { agent, entryIds, server } = await spire.start([{ path: CHECKOUT }, { path: BROKER }], {
      svidTtlSeconds: SVID_TTL_SECONDS,
    });
    const id = server.id(CHECKOUT);
    const stage = await startStage({
      ...{ trustDomains: [TRUST_DOMAIN], workloads: [id] },
      brokerFlags: ['--spiffe-socket', agent.endpoint],
    });
    const request = () => stage.request('--spiffe-socket', agent.endpoint, '--svid-id', id);
    expect(await request()).toMatchObject({ exitCode: 0, stderr: '' });

    const svid = await agent.x509Svid(id);
    const endsAtMs = Date.parse(new X509Certificate(svid.chain).validTo);
    const shown = showSvid(stage, svid);
    await server.deleteEntry(entryIds[0] ?? '');
    await agent.waitForId(id, 'absent');
    expect(Date.now()).toBeLessThan(endsAtMs);
    expect(await shown.passport()).toEqual(PASSPORT);
    // Asked anew, the Workload API gives it no SVID.
    expect(await request()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('svid_not_found') });

    // RFC 5280 section 4.1.2.5: valid through the second that notAfter names.
    await waitFor('the SVID to end', () => Date.now() > endsAtMs + 1_000 || undefined);
    const connections = shown.connections();
    expect(await shown.passport()).toEqual({ status: 401, code: 'svid_expired' });
    expect(shown.connections()).toBe(connections + 1);
    shown.close();
  });
});
