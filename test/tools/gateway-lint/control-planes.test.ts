/**
 * Lints the configuration that Envoy Gateway and Istio generate from their manifests (test/gateways/dumps): the linter finds
 * every bypass of the check, and nothing else.
 */
import { describe, expect, it } from '@jest/globals';
import { exchanged, rulesIn } from '../../support/docs/lint-rule-cases.ts';
import { readText } from '../../support/docs/markdown.ts';

const dump = (name: string) => readText(`test/gateways/dumps/${name}.json`);

describe("Istio's gateway, whose listeners are all OUTBOUND", () => {
  const text = dump('istio-gateway-socket');

  it('is held to what concerns callers', () => {
    const other = 'envoy.extensions.filters.http.cdn_loop.v3.CdnLoopConfig';
    const without = exchanged(text, 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz', other);
    expect(rulesIn(without)).toContain('check-missing');
  });

  it('has the endpoints of the verifier apart from its cluster', () => {
    expect(rulesIn(text)).toEqual([]);
    const pipe = /"pipe": \{\s*"path": "[^"]*"\s*\}/;
    const elsewhere = '"socket_address": { "address": "10.0.0.8", "port_value": 9191 }';
    expect(rulesIn(text.replace(pipe, elsewhere))).toEqual(['verifier-plaintext']);
  });
});

describe("Istio's sidecar", () => {
  const text = dump('istio-sidecar-loopback');
  const networkCheck = 'envoy.extensions.filters.network.ext_authz.v3.ExtAuthz';

  it('asks about connections that are no HTTP, on a condition that always holds', () => {
    expect(rulesIn(text)).toEqual([]);
    const other = 'envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
    expect(rulesIn(exchanged(text, networkCheck, other))).toEqual(['tcp-proxy']);
    const [before = '', after = ''] = text.split(networkCheck);
    const limited = before
      .slice(before.lastIndexOf('"shadow_rules"'))
      .replace('"any": true', '"destination_port": 1');
    const conditional = before.slice(0, before.lastIndexOf('"shadow_rules"')) + limited;
    expect(rulesIn([conditional, after].join(networkCheck))).toEqual(['tcp-proxy']);
    const [far = '', near = ''] = [before.lastIndexOf('"shadow_rules"')].flatMap((at) => [
      before.slice(0, at),
      before.slice(at),
    ]);
    const shared = `${far}"shadow_matcher": {}, ${near}`;
    expect(rulesIn([shared, after].join(networkCheck))).toEqual(['tcp-proxy']);
    const elsewhere = exchanged(after, '"filter": "envoy.filters.network.rbac"', '"filter": "other"');
    expect(rulesIn([before, elsewhere].join(networkCheck))).toEqual(['tcp-proxy']);
    const open = `${networkCheck}",\n"failure_mode_allow": true, "x": "`;
    expect(rulesIn([before, after].join(open))).toContain('tcp-proxy');
  });

  it('proxies to nowhere, unless somebody is there', () => {
    const somewhere = `"name": "BlackHoleCluster", "load_assignment": { "endpoints": [{}] }`;
    const cluster = text.lastIndexOf('"name": "BlackHoleCluster"');
    const changed =
      text.slice(0, cluster) + exchanged(text.slice(cluster), '"name": "BlackHoleCluster"', somewhere);
    expect(rulesIn(changed)).toContain('tcp-proxy');
  });
});

describe("Istio's outbound listeners", () => {
  const text = dump('istio-sidecar-loopback');

  it('are out of reach, where what is sent to their own port goes nowhere', () => {
    const reached = exchanged(text, '"destination_port": 15001', '"destination_port": 15002');
    expect(rulesIn(reached)).toContain('tcp-proxy');
    const bound = text.replaceAll(/"bind_to_port": false/g, '"bind_to_port": true');
    expect(rulesIn(bound)).toContain('check-missing');
  });

  it('get nothing from a listener that is within reach and hands connections over', () => {
    const inbound = '"traffic_direction": "INBOUND"';
    const handing = exchanged(text, inbound, `${inbound}, "use_original_dst": true`);
    expect(rulesIn(handing)).toContain('check-missing');
  });
});

describe("Envoy Gateway's listener", () => {
  const text = dump('envoy-gateway-socket');

  it('has a check that is off until a route switches it on', () => {
    expect(rulesIn(text)).toEqual([]);
    const [before = '', after = ''] = text.split('"typedPerFilterConfig"');
    expect(rulesIn([before, after].join('"typedPerFilterConfigs"'))).toContain('check-off');
  });

  it('is not judged by one that answers for the gateway itself', () => {
    const forwarding = text.replace(
      /"directResponse": \{\s*"status": 500\s*\}/,
      '"route": { "cluster": "x" }',
    );
    expect(forwarding).not.toBe(text);
    expect(rulesIn(forwarding)).toEqual(expect.arrayContaining(['check-missing', 'path-not-normalized']));
  });
});
