/**
 * Tests the chart, the documented workloads and Control with a real API server. All suites share this file, because starting a
 * server is slow.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NAMESPACE } from '../support/chart/chart.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { admissionSuite } from './admission-suite.ts';
import { chartSuite } from './chart-suite.ts';
import { Cluster, describeCluster } from './cluster.ts';
import { installCustomResources } from './custom-resources.ts';
import { gatewaySuite } from './gateway-suite.ts';
import { makeRestricted } from './namespaces.ts';
import { releaseSuite } from './release-suite.ts';

describeCluster('Kubernetes', () => {
  let cluster: Cluster;
  let customResources: readonly string[];
  beforeAll(async () => {
    cluster = await Cluster.start();
    customResources = await installCustomResources(cluster);
    await makeRestricted(cluster, NAMESPACE);
  });
  afterAll(() => cluster?.stop());

  it('is the version that was built, with the custom resources of the chart and of gateways', async () => {
    const module = readFileSync(checkoutPath('test', 'kubernetes', 'server', 'go.mod'), 'utf8');
    const [, version] = /^\tk8s\.io\/kubernetes (v\S+)/m.exec(module) ?? [];
    const { body } = await cluster.call({ path: '/version' });
    expect(body.gitVersion).toBe(version);
    expect(customResources.filter((name) => !/istio|gateway/.test(name))).toEqual([
      'cert-manager.io Certificate',
      'monitoring.coreos.com PodMonitor',
      'monitoring.coreos.com PrometheusRule',
      'monitoring.coreos.com ServiceMonitor',
    ]);
    const groups = new Set(customResources.map((name) => name.split(' ')[0]));
    const ofGateways = ['gateway.envoyproxy.io', 'gateway.networking.k8s.io', 'networking.istio.io'];
    for (const group of [...ofGateways, 'security.istio.io']) expect(groups).toContain(group);
  });

  describe('the chart', () => chartSuite(() => cluster));
  describe('gateways', () => gatewaySuite(() => cluster));
  describe('a restricted namespace', () => admissionSuite(() => cluster));
  describe('a release', () => releaseSuite(() => cluster));
});
