/**
 * SPIRE's X.509 authority is prepared, activated, tainted and revoked. Callers pass at every step; an SVID of the revoked
 * authority gets no passport, neither on a new connection nor on one from before.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { waitFor } from '../../support/wait.ts';
import { type BrokerStage, useBrokerStages } from './broker-stage.ts';
import { OFTEN, PASSPORT, type ShownSvid, showSvid } from './shown-svid.ts';
import { authorityOf } from './spire-agent.ts';
import { type StartedSpire, TRUST_DOMAIN, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

const CHECKOUT = '/ns/prod/sa/checkout';

describeWithSpire("a change of SPIRE's X.509 authority", () => {
  const spire = useSpire();
  const startStage = useBrokerStages();
  let started: StartedSpire;
  let stage: BrokerStage;
  let former: ShownSvid;

  beforeAll(async () => {
    started = await spire.start([{ path: CHECKOUT }], { svidTtlSeconds: 600 });
    stage = await startStage({
      ...{ trustDomains: [TRUST_DOMAIN], workloads: [started.server.id(CHECKOUT)] },
      brokerFlags: ['--spiffe-socket', started.agent.endpoint, ...OFTEN],
    });
  });
  afterAll(() => former?.close());

  const ownSvid = () => started.agent.x509Svid(started.server.id(CHECKOUT));

  async function expectRequestToPass(): Promise<void> {
    const result = await stage.request('--spiffe-socket', started.agent.endpoint);
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
  }

  it('denies the SVIDs of the former one when it is revoked, and no others', async () => {
    const { server } = started;
    const formerSvid = await ownSvid();
    former = showSvid(stage, formerSvid);
    const formerId = (await server.authorities()).active;
    expect(await former.passport()).toEqual(PASSPORT);

    const nextId = await server.prepareAuthority();
    await expectRequestToPass();
    await server.changeAuthority('activate', nextId);
    await expectRequestToPass();
    expect(await former.passport()).toEqual(PASSPORT);

    await server.changeAuthority('taint', formerId);
    await waitFor('an SVID of the next authority', async () =>
      authorityOf(await ownSvid()) === authorityOf(formerSvid) ? undefined : true,
    );
    await expectRequestToPass();
    // A tainted authority stays in the bundle, so that SVIDs can be replaced in peace.
    expect(await former.passport()).toEqual(PASSPORT);

    await started.agent.waitForOwnSvidAfter(authorityOf(formerSvid));
    const before = former.connections();
    await server.changeAuthority('revoke', formerId);
    const refused = await waitFor('the former SVID to be refused', async () => {
      const answer = await former.passport();
      return answer.status === 200 ? undefined : answer;
    });
    expect(refused).toEqual({ status: 401, code: 'svid_untrusted' });
    // The broker closed the connection of the time before: the refused request came on another one.
    expect(former.connections()).toBeGreaterThan(before);
    await expectRequestToPass();
  });
});
