/** The harness of real SPIRE does what the other suites of this folder rely on. */
import { expect, it } from '@jest/globals';
import { useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

describeWithSpire('SPIRE for tests', () => {
  const spire = useSpire();

  it('starts, restarts, and gives and takes entries', async () => {
    const { server, agent, entryIds } = await spire.start([{ path: '/ns/prod/sa/checkout' }]);
    const id = server.id('/ns/prod/sa/checkout');
    expect(await agent.spiffeIds()).toEqual([id]);

    await agent.stop();
    await agent.startAgain();
    await agent.waitForId(id);
    await server.stop();
    await server.startAgain();

    for (const entryId of entryIds) await server.deleteEntry(entryId);
    await agent.waitForId(id, 'absent');
  });

  it('prepares, activates, taints and revokes an X.509 authority', async () => {
    const server = await spire.server({ trustDomain: 'rotation.example' });
    const first = (await server.authorities()).active;
    const next = await server.prepareAuthority();
    await server.changeAuthority('activate', next);
    expect(await server.authorities()).toEqual({ active: next, old: first });
    const authorities = async () => (await server.bundle('pem')).match(/BEGIN CERTIFICATE/g)?.length;
    expect(await authorities()).toBe(2);
    await server.changeAuthority('taint', first);
    await server.changeAuthority('revoke', first);
    expect(await authorities()).toBe(1);
  });
});
