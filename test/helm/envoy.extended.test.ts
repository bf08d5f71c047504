/**
 * Checks Envoy's configuration as rendered by the chart: complete, for this release, and without a setting that weakens the
 * check.
 */
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { lintGateway } from '../../src/tools/gateway-lint/lint.ts';
import { describeChart, objectOf, objectsIn, refusalOf, render, renderText } from '../support/chart/chart.ts';

const VALUES = ['envoy-plain', 'envoy-mtls', 'envoy-socket', 'sidecar-loopback'] as const;

function configOf(file: string): string {
  const map = objectsIn(renderText({ file })).find(({ metadata }) => metadata.name.endsWith('-envoy'));
  return map?.data?.['envoy.yaml'] ?? '';
}

describeChart("Envoy's configuration", () => {
  const endpoint = (config: string, at: number) =>
    parse(config).static_resources.clusters[at].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address;

  it.each([
    ['envoy-plain', { socket_address: { address: 'rel-proofgate-verifier.gateway.svc', port_value: 9191 } }],
    ['envoy-mtls', { socket_address: { address: 'rel-proofgate-verifier.gateway.svc', port_value: 9191 } }],
    ['envoy-socket', { pipe: { path: '/run/shop/verifier.sock' } }],
    ['sidecar-loopback', { socket_address: { address: '127.0.0.1', port_value: 9191 } }],
  ])('asks the verifier of this release: %s', (file, address) => {
    expect(endpoint(configOf(file), 0)).toEqual(address);
  });

  it('has the addresses and the scheme that the values say', () => {
    const { clusters, listeners } = parse(configOf('envoy-mtls')).static_resources;
    expect(listeners[0].address.socket_address).toEqual({ address: '::', port_value: 8443 });
    expect(endpoint(configOf('envoy-mtls'), 1).socket_address).toEqual({
      address: 'orders.shop.svc',
      port_value: 80,
    });
    expect(clusters.map(({ type }: { type: string }) => type)).toEqual(['STRICT_DNS', 'STRICT_DNS']);
    const manager = parse(configOf('envoy-plain')).static_resources.listeners[0].filter_chains[0].filters[0];
    expect(manager.typed_config.scheme_header_transformation).toEqual({ scheme_to_overwrite: 'https' });
  });

  it('shows the verifier a certificate, and asks none but the one that is named', () => {
    const { transport_socket: tls } = parse(configOf('envoy-mtls')).static_resources.clusters[0];
    const { common_tls_context: common, sni } = tls.typed_config;
    expect(sni).toBe('rel-proofgate-verifier.gateway.svc');
    expect(common.tls_certificates).toEqual([
      {
        certificate_chain: { filename: '/run/gateway-tls/gateway.crt' },
        private_key: { filename: '/run/gateway-tls/gateway.key' },
      },
    ]);
    expect(common.validation_context).toEqual({
      trusted_ca: { filename: '/run/gateway-tls/ca.crt' },
      match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: sni } }],
    });
  });

  it('asks each verifier behind a headless Service for its health, and those say so before they end', () => {
    const partsOf = (headless: boolean) => {
      const objects = render({ file: 'envoy-mtls', also: { verifier: { service: { headless } } } });
      const config =
        objectOf(objects, 'ConfigMap', 'rel-proofgate-verifier-envoy').data?.['envoy.yaml'] ?? '';
      const [{ health_checks: checks }] = parse(config).static_resources.clusters;
      const verifier = objectOf(objects, 'Deployment', 'rel-proofgate-verifier').spec.template.spec;
      const delays = verifier.containers[0]?.args.filter((arg) => arg.startsWith('--drain-delay='));
      return { checks, delays };
    };
    expect(partsOf(true)).toMatchObject({
      checks: [{ grpc_health_check: { service_name: 'envoy.service.auth.v3.Authorization' } }],
      delays: ['--drain-delay=5s'],
    });
    expect(partsOf(false)).toEqual({ checks: undefined, delays: [] });
    const own = { verifier: { settings: { drainDelay: '9s' } } };
    expect(renderText({ file: 'envoy-mtls', also: own }).match(/--drain-delay=\w+/g)).toEqual([
      '--drain-delay=9s',
    ]);
  });

  it.each(VALUES)('weakens nothing: %s', (file) => {
    const report = lintGateway(configOf(file), { allowedRules: [] });
    const expected = file === 'envoy-plain' ? ['verifier-plaintext'] : [];
    expect(report?.findings.map(({ rule }) => rule)).toEqual(expected);
  });

  it('is not rendered without an API, nor with TLS for anybody', () => {
    expect(refusalOf({ file: 'envoy-plain', also: { verifier: { envoy: { upstreamHost: '' } } } })).toContain(
      'verifier.envoy.upstreamHost is required',
    );
    const tls = { clientCa: { configMap: '' }, clientSans: [] };
    expect(refusalOf({ file: 'envoy-mtls', also: { verifier: { tls } } })).toContain(
      'verifier.envoy with TLS needs verifier.tls.clientCa',
    );
  });
});
