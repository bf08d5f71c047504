/**
 * The chart, the documented workloads and Control against a real API server. One file, since a server is dear to start: what it is asked
 * is in the suites beside it.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkoutPath } from '../e2e/harness/checkout.ts';
import { NAMESPACE } from '../helm/chart.ts';
import { admissionSuite } from './admission-suite.ts';
import { chartSuite } from './chart-suite.ts';
import { Cluster, describeCluster } from './cluster.ts';
import { installCustomResources } from './custom-resources.ts';
import { makeRestricted } from './namespaces.ts';
import { releaseSuite } from './release-suite.ts';

describeCluster('Kubernetes', () => {
  let cluster: Cluster;
  let customResources: readonly string[];
  beforeAll(async () => {
    cluster = await Cluster.start();
    customResources = await installCustomResources(cluster);
    await makeRestricted(cluster, NAMESPACE);
  }, 300_000);
  afterAll(() => cluster?.stop(), 60_000);

  it('is the version that was built, with the custom resources of the chart', async () => {
    const module = readFileSync(checkoutPath('test', 'kubernetes', 'server', 'go.mod'), 'utf8');
    const [, version] = /^\tk8s\.io\/kubernetes (v\S+)/m.exec(module) ?? [];
    const { body } = await cluster.call({ path: '/version' });
    expect(body.gitVersion).toBe(version);
    expect(customResources).toEqual([
      'cert-manager.io Certificate',
      'monitoring.coreos.com PodMonitor',
      'monitoring.coreos.com PrometheusRule',
      'monitoring.coreos.com ServiceMonitor',
    ]);
  });

  describe('the chart', () => chartSuite(() => cluster));
  describe('a restricted namespace', () => admissionSuite(() => cluster));
  describe('a release', () => releaseSuite(() => cluster));
});
