/** Checks the peers that the chart's NetworkPolicies admit, and the destinations of verifiers. */
import { expect, it } from '@jest/globals';
import { describeChart, objectOf, render, type Values } from '../support/chart/chart.ts';

describeChart('the network policy', () => {
  const policyOf = (values: Values, name: string) => objectOf(render(values), 'NetworkPolicy', name).spec;

  it('by default allows Checks from pods of the namespace, and no scraping', () => {
    expect(policyOf({ file: 'verifier-redis' }, 'rel-proofgate-verifier')).toMatchObject({
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 9191, protocol: 'TCP' }] }],
    });
    expect(policyOf({ file: 'verifier-locked-down' }, 'rel-proofgate-verifier')).toMatchObject({
      ingress: [{ ports: [{ port: 9191 }] }, { ports: [{ port: 9192 }] }],
    });
  });

  it('lets every client send requests to a proxy, and the proxy reach its API', () => {
    const { egress, ingress } = policyOf({ file: 'proxy' }, 'rel-proofgate-proxy');
    expect(ingress).toEqual([
      { ports: [{ port: 8443, protocol: 'TCP' }] },
      { from: [{ podSelector: {} }], ports: [{ port: 9192, protocol: 'TCP' }] },
    ]);
    expect(egress).toMatchObject([
      {},
      { ports: [{ port: 6379 }] },
      { to: [{}] },
      { ports: [{ port: 8443 }] },
    ]);
    const other = { proxy: { networkPolicy: { egress: [{ ports: [{ port: 1, protocol: 'TCP' }] }] } } };
    const named = policyOf({ file: 'proxy', also: other }, 'rel-proofgate-proxy');
    expect(named.egress).toMatchObject([{}, {}, {}, { ports: [{ port: 1 }] }]);
  });

  it('lets a verifier reach Redis and its Control', () => {
    const { egress } = policyOf({ file: 'everything' }, 'rel-proofgate-verifier');
    expect(egress).toMatchObject([
      { ports: [{ port: 53 }, { port: 53 }] },
      { ports: [{ port: 6379 }] },
      {
        to: [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'control' } } }],
        ports: [{ port: 9193 }],
      },
    ]);
  });
});

describeChart('egress that is restricted', () => {
  const networkPolicy = { restrictEgress: true };
  const portsOf = ({ also = {}, file = 'verifier-cluster' }: Values) => {
    const verifier = { networkPolicy, ...(also as { readonly verifier?: object }).verifier };
    const { egress } = objectOf(
      render({ file, also: { ...also, verifier } }),
      'NetworkPolicy',
      'rel-proofgate-verifier',
    ).spec as { readonly egress?: readonly { readonly ports: readonly { readonly port: number }[] }[] };
    const [, ...beyondDns] = egress ?? [];
    return beyondDns.map(({ ports }) => ports.map(({ port }) => port));
  };

  it.each([
    ['redis://redis.shop.example', [6379]],
    ['rediss://redis.shop.example:6380/2', [6380]],
    ['redis://[2001:db8::1]:6381', [6381]],
    ['redis://[2001:db8::1]', [6379]],
    ['redis-sentinel://a:26380,b/shop', [6379, 26380, 26379]],
    ['rediss-cluster://a:7000,b:7001', [7000, 7001]],
  ])('opens the ports of %s', (url, ports) => {
    expect(portsOf({ also: { redis: { url } } })[0]).toEqual(ports);
  });

  it('opens ports that no URL shows where they are named', () => {
    const urlSecret = { name: 'redis' };
    expect(portsOf({ also: { redis: { url: '', urlSecret } } })[0]).toEqual([6379]);
    expect(portsOf({ also: { redis: { url: '', urlSecret, ports: [6390] } } })[0]).toEqual([6390]);
  });

  it.each([
    ['https://control.shop.example', [443]],
    ['https://control.shop.example:8443', [8443]],
    ['https://[2001:db8::1]:9443', [9443]],
  ])('opens the port of Control at %s, unless egress says where it is', (url, ports) => {
    const source = { control: { url } };
    expect(portsOf({ also: { verifier: { source } } })[1]).toEqual(ports);
    const egress = [{ to: [{ ipBlock: { cidr: '192.0.2.0/24' } }], ports: [{ port: 1, protocol: 'TCP' }] }];
    const named = { source, networkPolicy: { ...networkPolicy, egress } };
    expect(portsOf({ also: { verifier: named } }).slice(1)).toEqual([[1]]);
  });
});
