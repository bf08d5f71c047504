/** Runs `helm test`: both containers of the rendered pod as processes, against the rendered Control and a fake gateway. */

import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import {
  containersOf,
  describeChart,
  NAMESPACE,
  objectOf,
  podsOf,
  type Rendered,
  render,
} from '../support/chart/chart.ts';
import {
  makePodFolder,
  type PodFolder,
  runContainer,
  type StartedContainer,
  startContainer,
} from '../support/chart/pod-process.ts';
import { created, makeSite, SITE } from '../support/control/control-configuration.ts';
import { type ControlProgram, callApi } from '../support/control/control-program.ts';
import {
  type ServiceAccountIssuer,
  startServiceAccountIssuer,
} from '../support/fakes/service-account-issuer.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { freePort } from '../support/harness/free-port.ts';
import { waitFor } from '../support/wait.ts';

const AUDIENCE = 'shop-eu-1';

interface Seen {
  readonly url: string | undefined;
  readonly headers: readonly string[];
}

describeChart('helm test', () => {
  let certificates: TestCertificates;
  let issuer: ServiceAccountIssuer;
  let controlPod: PodFolder;
  let testPod: PodFolder;
  let control: StartedContainer;
  let program: Pick<ControlProgram, 'call'>;
  let gateway: Server;
  let token = '';
  let port = 0;
  const seen: Seen[] = [];

  beforeEach(async () => {
    certificates = await makeCertificates('api.shop.example', 'spiffe://x/y', ['127.0.0.1']);
    issuer = await startServiceAccountIssuer({ certificate: certificates.server, hostname: '127.0.0.1' });
    const { cert, key } = certificates.server;
    gateway = createServer({ cert, key }, (request, response) => {
      seen.push({ url: request.url, headers: Object.keys(request.headers) });
      response.end('{}');
    });
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    controlPod = await makePodFolder(['/var/lib/proofgate']);
    testPod = await makePodFolder(['/run/proofgate']);
    port = await freePort();
    for (const [name, content] of Object.entries({
      'tls/tls.crt': cert,
      'tls/tls.key': key,
      'issuer-ca/ca.crt': certificates.ca.cert,
    })) {
      await controlPod.put(`/etc/proofgate/${name}`, content);
    }
    const [deployment] = podsOf(
      objects('none').filter(({ metadata }) => metadata.name === 'rel-proofgate-control'),
    );
    const [container] = deployment?.spec.containers ?? [];
    if (container === undefined) throw new Error('no Control');
    control = await startContainer(container, controlPod, {}, new Map([[9193, port]]));
    token = (await readFile(controlPod.at('/var/lib/proofgate/bootstrap-token'), 'utf8')).trim();
    const [url, ca] = [`https://127.0.0.1:${port}`, certificates.ca.cert];
    program = { call: (call) => callApi(url, { ca, ...call }) };
    await makeSite(program, token);
  });
  afterEach(async () => {
    seen.splice(0);
    await control.service.stop();
    await issuer.close();
    gateway.closeAllConnections();
    await new Promise((resolve) => gateway.close(resolve));
    for (const one of [controlPod, testPod, certificates]) await one.remove();
  });

  function objects(policy: string): readonly Rendered[] {
    return render({
      file: 'control-sqlite',
      also: {
        control: {
          publicUrls: [`https://127.0.0.1:${port}`],
          issuerCa: { configMap: 'shop-ca' },
          settings: { allowIssuerNetwork: ['127.0.0.0/8'] },
        },
        test: {
          enabled: true,
          url: 'https://api.shop.example/v1/orders/7',
          connectTo: `127.0.0.1:${(gateway.address() as AddressInfo).port}`,
          policy,
          audience: AUDIENCE,
          controlCa: { configMap: 'shop-ca' },
          gatewayCa: { configMap: 'shop-ca' },
        },
      },
    });
  }

  const post = (path: string, body?: object) =>
    program.call({ method: 'POST', path, token, ...(body === undefined ? {} : { body }) });

  async function activeSource(): Promise<string> {
    const coordinates = { issuer: issuer.issuer, jwks_uri: issuer.jwksUri, audience: AUDIENCE };
    const draft = { kind: 'oidc_jwks', display_name: 'Cluster', ...coordinates };
    const source = created(await post(`/v1/sites/${SITE}/sources`, draft), 'source_id');
    const path = `/v1/sources/${source}/revisions/1`;
    const { body } = await post(`${path}/validate`);
    await post(`${path}/activate`, { expected_scope: body.detected_scope });
    await waitFor('the source to be active', async () =>
      (await program.call({ path, token })).body.state === 'active' ? true : undefined,
    );
    return source;
  }

  /** @returns the reference of a policy for the ServiceAccount of the chart's test */
  async function policyFor(account: string): Promise<string> {
    const policy = {
      ...{ display_name: 'Test', source_id: await activeSource(), source_revision: 1, client_id: 'billing' },
      ...{ approval: 'automatic', max_key_lifetime_seconds: 3600, verified_issuer: issuer.issuer },
      verified_subject: `system:serviceaccount:${NAMESPACE}:${account}`,
    };
    const id = created(await post(`/v1/sites/${SITE}/enrollment-policies`, policy), 'policy_id');
    return String(
      (await program.call({ path: `/v1/enrollment-policies/${id}/command`, token })).body.reference,
    );
  }

  it('enrolls a key as its ServiceAccount and sends one signed request', async () => {
    const account = 'rel-proofgate-test';
    const rendered = objects(await policyFor(account));
    expect(objectOf(rendered, 'ServiceAccount', account).automountServiceAccountToken).toBe(false);
    const [pod] = podsOf(rendered.filter(({ kind }) => kind === 'Pod'));
    const [enroll, request] = pod === undefined ? [] : containersOf(pod.spec);
    if (enroll === undefined || request === undefined) throw new Error('no test');
    const workload = issuer.token({ namespace: NAMESPACE, serviceAccount: account, audience: AUDIENCE });
    await testPod.put('/var/run/secrets/proofgate/token', workload);
    for (const name of ['control-ca', 'gateway-ca']) {
      await testPod.put(`/etc/proofgate/${name}/ca.crt`, certificates.ca.cert);
    }
    const enrolled = await runContainer(enroll, testPod);
    expect({ ...enrolled, stdout: '' }).toMatchObject({ exitCode: 0 });
    expect(await runContainer(request, testPod)).toMatchObject({ exitCode: 0, stdout: '{}' });
    expect(seen).toMatchObject([{ url: '/v1/orders/7' }]);
    const signed = ['authorization', 'x-proofgate-transcript', 'x-proofgate-signature'];
    expect(seen[0]?.headers).toEqual(expect.arrayContaining(signed));
  });
});
