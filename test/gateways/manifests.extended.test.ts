/** Validates the manifests below envoy/ against the schemas of the gateways' custom resources. */
import { expect, it } from '@jest/globals';
import { describeChart } from '../support/chart/chart.ts';
import { misfitsIn } from '../support/chart/kubeconform.ts';
import { filesOfCheckout, readText } from '../support/docs/markdown.ts';

/** Envoy's own configuration, and values of a chart. */
const NO_OBJECTS = /^envoy\/(?:egress|envoy|http-service)\.yaml$|\/mesh-config\.yaml$/;
const objects = filesOfCheckout('envoy', '.yaml').filter((file) => !NO_OBJECTS.test(file));

describeChart("gateways' own schemas", () => {
  it.each(objects)('take %s', (file) => {
    expect(misfitsIn(readText(file))).toBe('');
  });

  it.each([
    ['envoy/envoy-gateway/gateway.yaml', 'failOpen: false', 'failsOpen: false'],
    ['envoy/envoy-gateway/verifier-mtls.yaml', 'clientCertificateRef:', 'clientCertificate:'],
    ['envoy/istio/gateway.yaml', 'provider: { name: proofgate }', 'provider: { nam: proofgate }'],
    ['envoy/istio/verifier-mtls.yaml', 'mode: MUTUAL', 'mode: BOTH'],
    ['envoy/gateway-api/external-auth.yaml', 'protocol: GRPC', 'protocol: EXT_AUTHZ'],
  ])('would not take %s with another word in it', (file, passage, by) => {
    const text = readText(file);
    expect(text).toContain(passage);
    expect(misfitsIn(text.replace(passage, by))).not.toBe('');
  });
});
