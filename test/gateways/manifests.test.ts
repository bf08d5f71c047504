/** Checks that no manifest below envoy/ weakens the check, and that names across manifests match. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { lintEgress } from '../../src/tools/gateway-lint/egress/lint-egress.ts';
import { lintGateway } from '../../src/tools/gateway-lint/lint.ts';
import { EGRESS_SET, MANIFEST_SETS, textOf, VERIFIER_SERVICES } from '../support/docs/manifest-sets.ts';
import { filesOfCheckout, readText } from '../support/docs/markdown.ts';
import { protocolOptionsOf } from '../support/docs/static-bootstrap.ts';

/** Envoy's own configuration: their tests start Envoy with them. */
const BOOTSTRAPS = ['envoy/egress.yaml', 'envoy/envoy.yaml', 'envoy/http-service.yaml'];
const files = filesOfCheckout('envoy', '.yaml').filter((file) => !BOOTSTRAPS.includes(file));

describe('as sets', () => {
  it('hold every file', () => {
    const sets = [...MANIFEST_SETS, EGRESS_SET];
    const held = new Set(sets.flatMap((set) => set.files.map((file) => `envoy/${file}`)));
    expect(files.filter((file) => !held.has(file))).toEqual([]);
  });

  it.each(MANIFEST_SETS)('weaken nothing: $name', (set) => {
    const report = lintGateway(textOf(set), { allowedRules: [] });
    expect(report?.findings.map(({ rule, place }) => `${rule} in line ${place.line}`)).toEqual([]);
    // An inline exception allows the settings that Gateway API cannot express, and no others.
    expect(report?.allowed).toBe(set.name === 'gateway-api' ? 2 : 0);
  });

  it.each([
    ['manifests', textOf(EGRESS_SET)],
    ['dump', readText(`test/gateways/dumps/${EGRESS_SET.name}.json`)],
  ])('sign what leaves: %s', (_form, text) => {
    expect(lintEgress(text, { allowedRules: [] })?.findings).toEqual([]);
  });
});

describe('the dumps', () => {
  const made = new Map(
    readText('test/gateways/dumps/made-from.sha256')
      .trim()
      .split('\n')
      .map((line) => line.split(/ +/).toReversed() as [string, string]),
  );

  it.each([...MANIFEST_SETS, EGRESS_SET].filter(({ name }) => name !== 'gateway-api'))(
    'are made from these manifests (scripts/make-gateway-dumps.sh): $name',
    ({ files: parts, name }) => {
      const hash = createHash('sha256');
      for (const file of parts) hash.update(readText(`envoy/${file}`).replace(/^ *#.*\n/gm, ''));
      expect(made.get(name)).toBe(hash.digest('hex'));
    },
  );
});

describe('behind a Service', () => {
  it.each(VERIFIER_SERVICES)(
    'connections end before the verifier that ends closes them: $dump',
    ({ cluster, dump }) => {
      const options = protocolOptionsOf(JSON.parse(readText(`test/gateways/dumps/${dump}.json`)), cluster);
      const [, seconds = ''] = /"max_connection_duration":"(\d+)s"/.exec(JSON.stringify(options)) ?? [];
      const { verifier } = parse(readText('helm/proofgate/values.yaml'));
      expect(Number(seconds)).toBeGreaterThan(0);
      // One more second, so that the cluster stops sending new connections to the pod.
      expect(Number(seconds) + 1).toBeLessThan(verifier.preStopSeconds);
    },
  );
});

describe("Istio's dumps", () => {
  const [impostor] = parseAllDocuments(readText('test/gateways/mesh.yaml'))
    .map((document) => document.toJS())
    .filter(({ metadata }) => metadata.namespace === 'tenant');

  it.each(MANIFEST_SETS.filter(({ name }) => name.startsWith('istio-')))(
    'ask our verifier, though a tenant offers another by its name: $name',
    ({ name }) => {
      const dump = readText(`test/gateways/dumps/${name}.json`);
      const [host] = impostor.spec.hosts;
      expect(impostor.spec.exportTo).toEqual(['*']);
      expect(dump).toContain(`"cluster_name": "outbound|9191||${host}"`);
      expect(dump).not.toContain(impostor.spec.endpoints[0].address);
    },
  );
});

describe('each file', () => {
  it.each(files)('begins with what the gateway cannot do, or what it is for: %s', (file) => {
    expect(readText(file)).toMatch(/^---\n# \S/);
  });
});

describe('names that belong together', () => {
  const documents = (file: string) =>
    parseAllDocuments(readText(`envoy/${file}`)).map((document) => document.toJS());
  const ofKind = (file: string, kind: string) => documents(file).filter((one) => one.kind === kind);

  it("Envoy Gateway's patches name what it generates of the other objects", () => {
    const [gateway] = ofKind('envoy-gateway/gateway.yaml', 'Gateway');
    const [policy] = ofKind('envoy-gateway/gateway.yaml', 'SecurityPolicy');
    const [patches] = ofKind('envoy-gateway/gateway.yaml', 'EnvoyPatchPolicy');
    const listeners = gateway.spec.listeners.map(
      ({ name }: { name: string }) => `${gateway.metadata.namespace}/${gateway.metadata.name}/${name}`,
    );
    const filter = `envoy.filters.http.ext_authz/securitypolicy/${policy.metadata.namespace}/${policy.metadata.name}`;
    const named = new Set(patches.spec.jsonPatches.map(({ name }: { name: string }) => name));
    expect([...named]).toEqual(listeners);
    const paths: readonly string[] = patches.spec.jsonPatches.map(
      ({ operation }: { operation: { jsonPath?: string } }) => operation.jsonPath ?? '',
    );
    const checks = paths.filter((path) => path.includes('ext_authz'));
    expect(checks.length).toBeGreaterThan(0);
    expect(checks.filter((path) => !path.includes(`'${filter}'`))).toEqual([]);
  });

  it("Istio's providers are hosts that the verifier's files have, in the namespace of the proxies that ask", () => {
    const [values] = documents('istio/mesh-config.yaml');
    const { extensionProviders: providers } = values.meshConfig;
    const asks = { gateway: ['socket', 'mtls'], sidecar: ['loopback'] };
    for (const [file, places] of Object.entries(asks)) {
      const [policy] = ofKind(`istio/${file}.yaml`, 'AuthorizationPolicy');
      const { namespace } = policy.metadata;
      const { envoyExtAuthzGrpc: check } = providers.find(
        ({ name }: { name: string }) => name === policy.spec.provider.name,
      );
      for (const place of places) {
        const [entry] = ofKind(`istio/verifier-${place}.yaml`, 'ServiceEntry');
        const [rule] = ofKind(`istio/verifier-${place}.yaml`, 'DestinationRule');
        const [host] = entry.spec.hosts;
        expect([entry.metadata.namespace, rule.metadata.namespace]).toEqual([namespace, namespace]);
        expect([check.service, check.port]).toEqual([`${namespace}/${host}`, entry.spec.ports[0].number]);
        expect([entry.spec.exportTo, rule.spec.exportTo, rule.spec.host]).toEqual([['.'], ['.'], host]);
      }
    }
  });

  it("Istio's providers differ in their namespaces alone", () => {
    const [values] = documents('istio/mesh-config.yaml');
    const settings = values.meshConfig.extensionProviders.map(
      ({ envoyExtAuthzGrpc: { service, ...others } }: { envoyExtAuthzGrpc: { service: string } }) => others,
    );
    expect(settings).toEqual([settings[0], settings[0]]);
  });

  it("Istio's sidecar and gateway are patched alike, but for the scheme and what Istio lets gateways do by itself", () => {
    const patchesOf = (file: string) =>
      JSON.stringify(ofKind(file, 'EnvoyFilter')[0].spec.configPatches).replaceAll(
        /"context":"\w+"|"scheme_to_overwrite":"https?"|"use_remote_address":true,|"forward_client_cert_details":"\w+",/g,
        '',
      );
    expect(patchesOf('istio/sidecar.yaml')).toBe(patchesOf('istio/gateway.yaml'));
  });
});
