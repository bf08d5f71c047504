/**
 * Two SPIRE servers, federated: the broker of one serves workloads of both, each with the signing key and the trust bundle of
 * its own trust domain.
 */
import { beforeAll, expect, it } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { waitFor } from '../../support/wait.ts';
import { type BrokerStage, useBrokerStages } from './broker-stage.ts';
import { OFTEN, PASSPORT, showSvid } from './shown-svid.ts';
import { authorityOf } from './spire-agent.ts';
import { type StartedSpire, TRUST_DOMAIN, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

const PARTNER = 'partner.example';
const STRANGER = 'stranger.example';
const CHECKOUT = '/ns/prod/sa/checkout';
const BROKER = '/ns/prod/sa/broker';

describeWithSpire('federated SPIRE', () => {
  const spire = useSpire();
  const startStage = useBrokerStages();
  let own: StartedSpire;
  let partner: StartedSpire;
  let stranger: StartedSpire;
  let stage: BrokerStage;

  beforeAll(async () => {
    const start = (trustDomain: string) =>
      spire.start([{ path: CHECKOUT }], { trustDomain, svidTtlSeconds: 600 });
    [own, partner, stranger] = [await start(TRUST_DOMAIN), await start(PARTNER), await start(STRANGER)];
    await own.server.federateWith(partner.server);
    await own.server.createEntry({ path: BROKER, agentPath: own.agent.path, federatesWith: [PARTNER] });
    await own.agent.waitForId(own.server.id(BROKER));
    stage = await startStage({
      trustDomains: [TRUST_DOMAIN, PARTNER, STRANGER],
      workloads: [own, partner, stranger].map(({ server }) => server.id(CHECKOUT)),
      brokerFlags: ['--spiffe-socket', own.agent.endpoint, '--accept-jwt-svid', ...OFTEN],
    });
  });

  const partnerSvid = () => partner.agent.x509Svid(partner.server.id(CHECKOUT));
  const request = ({ agent, server }: StartedSpire, ...flags: readonly string[]) =>
    stage.request('--spiffe-socket', agent.endpoint, '--svid-id', server.id(CHECKOUT), ...flags);

  it.each(['mtls', 'signed_form', 'jwt_svid'])(
    'both trust domains pass, each as itself (%s)',
    async (proof) => {
      for (const domain of [own, partner]) {
        expect(await request(domain, '--broker-proof', proof)).toMatchObject({ exitCode: 0, stderr: '' });
        const headers = stage.upstream.requests.at(-1)?.headers ?? [];
        const seen = ['subject', 'trust-domain', 'key-id'].map((name) =>
          headerValues(headers, `x-proofgate-${name}`),
        );
        const { trustDomain } = domain.server;
        expect(seen).toEqual([[domain.server.id(CHECKOUT)], [trustDomain], [`broker-${trustDomain}`]]);
      }
    },
  );

  it('serves no trust domain that is not federated, although it has a signing key for it', async () => {
    const shown = showSvid(stage, await stranger.agent.x509Svid(stranger.server.id(CHECKOUT)));
    expect(await shown.passport()).toEqual({ status: 403, code: 'trust_domain_unknown' });
    shown.close();
  });

  it("follows the authorities of the partner's server", async () => {
    const formerSvid = await partnerSvid();
    const former = showSvid(stage, formerSvid);
    const formerId = (await partner.server.authorities()).active;
    const nextId = await partner.server.prepareAuthority();
    await partner.server.changeAuthority('activate', nextId);
    await partner.server.changeAuthority('taint', formerId);
    await own.server.refreshFederated(partner.server);
    await waitFor('an SVID of the next authority to get a passport', async () => {
      const svid = await partnerSvid();
      if (authorityOf(svid) === authorityOf(formerSvid)) return undefined;
      const next = showSvid(stage, svid);
      const { status } = await next.passport();
      next.close();
      return status === 200 || undefined;
    });
    expect(await request(partner)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await former.passport()).toEqual(PASSPORT);

    await partner.agent.waitForOwnSvidAfter(authorityOf(formerSvid));
    await partner.server.changeAuthority('revoke', formerId);
    await own.server.refreshFederated(partner.server);
    const refused = await waitFor('the former SVID to be refused', async () => {
      const answer = await former.passport();
      return answer.status === 200 ? undefined : answer;
    });
    expect(refused).toEqual({ status: 401, code: 'svid_untrusted' });
    former.close();
    expect(await request(partner)).toMatchObject({ exitCode: 0, stderr: '' });
  });
});

describeWithSpire("the bundle endpoint of a partner's SPIRE", () => {
  const spire = useSpire();
  const startStage = useBrokerStages();

  it('gives the broker the keys that its first bundle does not have (https_spiffe)', async () => {
    const { agent, server } = await spire.start([{ path: CHECKOUT }], {
      ...{ trustDomain: PARTNER, svidTtlSeconds: 600 },
    });
    // PEM has X.509 authorities alone, and the next one is not among them yet.
    const firstBundle = await server.bundleFile('pem');
    const formerSvid = await agent.x509Svid(server.id(CHECKOUT));
    const formerId = (await server.authorities()).active;
    const nextId = await server.prepareAuthority();
    const stage = await startStage({
      ...{ trustDomains: [PARTNER], workloads: [server.id(CHECKOUT)] },
      brokerFlags: [
        ...['--spiffe-bundle', `${PARTNER}=${firstBundle}`, '--spiffe-bundle-network', '127.0.0.0/8'],
        '--spiffe-bundle-endpoint',
        `${PARTNER}=${server.bundleEndpoint},https_spiffe,${server.id('/spire/server')}`,
        '--accept-jwt-svid',
      ],
    });
    const request = (proof: string) =>
      stage.request('--spiffe-socket', agent.endpoint, '--broker-proof', proof);
    await waitFor('the bundle to be fetched', async () => {
      return (await request('jwt_svid')).exitCode === 0 || undefined;
    });
    await server.changeAuthority('activate', nextId);
    await server.changeAuthority('taint', formerId);
    await waitFor('an SVID of the next authority', async () =>
      authorityOf(await agent.x509Svid(server.id(CHECKOUT))) === authorityOf(formerSvid) ? undefined : true,
    );
    expect(await request('mtls')).toMatchObject({ exitCode: 0, stderr: '' });
  });
});
