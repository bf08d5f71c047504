/** Opens each HTTP server that is no enforcement point, for tests of what they have in common. */
import { afterAll } from '@jest/globals';
import { Registry } from 'prom-client';
import { createBrokerServer } from '../../../src/broker/program/broker-listener.ts';
import { RequestSigner } from '../../../src/caller/sign/request-signer.ts';
import { createEgressMetrics } from '../../../src/caller/signer/egress/egress-metrics.ts';
import { openEgressServer } from '../../../src/caller/signer/egress/egress-server.ts';
import { openProofsApi } from '../../../src/caller/signer/signing-api/proofs-api.ts';
import { SignInRedirect } from '../../../src/cli/ctl/client/operator-sign-in.ts';
import { openAdminListener } from '../../../src/process/admin/admin-server.ts';
import { testBroker } from '../../support/broker/broker-fixture.ts';
import { ApiFixture } from '../../support/control/api-fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
});

const ignore = () => undefined;
const runnerMetrics = { refused: ignore, connections: ignore, requests: ignore, served: ignore };
const limits = {
  ...{ maxRequests: 10, maxBodyBytes: 1_000, spoolDirectory: '/nonexistent', maxSpoolBytes: 0 },
  ...{ bodyTimeoutMs: 10_000, idleTimeoutMs: 10_000, queueTimeoutMs: 10_000 },
};

/** Opens a server. @returns its port */
export const SERVERS: { readonly [name: string]: () => Promise<number> } = {
  'admin listener': async () => {
    const metrics = async () => ({ contentType: 'text/plain', text: '' });
    const admin = await openAdminListener({ host: '127.0.0.1', port: 0, readiness: () => [], metrics });
    closers.push(() => admin.close());
    return portOf(admin.address);
  },
  Control: async () => {
    const api = await ApiFixture.open();
    closers.push(() => api.close());
    return api.port;
  },
  broker: async () => portOf((await testBroker({ createServer: createBrokerServer })).url),
  signer: async () => {
    const egress = await openEgressServer({
      ...{ listen: '127.0.0.1:0', maxConnections: 10, routes: [], signer: new RequestSigner(), limits },
      ...{ unsigned: 'deny', onSigned: ignore, onPassed: ignore, onInternalError: ignore },
      ...{ onWrongClock: ignore },
      metrics: { ...createEgressMetrics(new Registry()), refused: ignore },
    });
    closers.push(() => egress.drain(1_000));
    return portOf(egress.address);
  },
  'signing API': async () => {
    const api = await openProofsApi({
      ...{ listen: '127.0.0.1:0', token: 'a token', signer: new RequestSigner(), metrics: runnerMetrics },
      ...{ onSigned: ignore, onInternalError: ignore },
    });
    closers.push(() => api.drain(1_000));
    return portOf(api.address);
  },
  'sign-in of the command line': async () => {
    const redirect = await SignInRedirect.listen({ port: 0, state: 'state', onStrayAnswer: ignore });
    closers.push(() => redirect.close());
    return portOf(redirect.url);
  },
};

const portOf = (address: string) => Number(/:(\d+)(?:\/|$)/.exec(address)?.[1]);
