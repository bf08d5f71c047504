/** Checks the broker's objects, and the values that it rejects. */
import { expect, it } from '@jest/globals';
import { describeChart, notesOf, objectOf, refusalOf, render, type Values } from '../support/chart/chart.ts';

const NAME = 'rel-proofgate-broker';

function podOf(values: Values) {
  const { spec } = objectOf(render(values), 'Deployment', NAME).spec.template;
  const [container] = spec.containers;
  return { args: container?.args ?? [], mounts: container?.volumeMounts ?? [], volumes: spec.volumes };
}

describeChart('the broker', () => {
  it('has an object of each kind that it needs', () => {
    const names = render({ file: 'broker' }).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names.toSorted()).toEqual([
      `Certificate ${NAME}`,
      `Deployment ${NAME}`,
      `NetworkPolicy ${NAME}`,
      `PodDisruptionBudget ${NAME}`,
      `Service ${NAME}`,
      `Service ${NAME}-metrics`,
      `ServiceAccount ${NAME}`,
      `ServiceMonitor ${NAME}`,
    ]);
  });

  it('mounts the socket of the SPIFFE CSI driver, read-only', () => {
    const { args, mounts, volumes } = podOf({ file: 'broker' });
    expect(args).toContain('--spiffe-socket=unix:///spiffe-workload-api/spire-agent.sock');
    expect(volumes).toContainEqual({
      name: 'workload-api',
      csi: { driver: 'csi.spiffe.io', readOnly: true },
    });
    expect(mounts).toContainEqual({
      ...{ name: 'workload-api', mountPath: '/spiffe-workload-api' },
      readOnly: true,
    });
  });

  it('has no socket without the Workload API', () => {
    const { args, volumes } = podOf({ file: 'broker-software' });
    expect(args.filter((arg) => arg.startsWith('--spiffe'))).toEqual([]);
    expect(volumes.filter(({ csi }) => csi !== undefined)).toEqual([]);
  });

  it('has a directory of keys for each trust domain, and its bundles', () => {
    const { args, mounts, volumes } = podOf({ file: 'broker-federated' });
    expect(mounts.map(({ mountPath }) => mountPath)).toEqual(
      expect.arrayContaining(['/etc/proofgate/keys/shop.example', '/etc/proofgate/keys/partner.example']),
    );
    expect(args.filter((arg) => arg.startsWith('--spiffe-bundle'))).toEqual([
      '--spiffe-bundle=shop.example=/etc/proofgate/bundles/shop.example/bundle.json',
      '--spiffe-bundle=other.example=/etc/proofgate/bundles/other.example/bundle.json',
      '--spiffe-bundle-endpoint=partner.example=https://bundle.partner.example,https_web',
      '--spiffe-bundle-endpoint=other.example=https://bundle.other.example:8443,https_spiffe,spiffe://other.example/spire/server',
      '--spiffe-bundle-ca-file=/etc/proofgate/endpoint-ca/ca.crt',
    ]);
    // Others than the pod's group cannot read keys.
    for (const { secret } of volumes)
      if (secret !== undefined) expect(secret).toMatchObject({ defaultMode: 0o440 });
  });

  it('mounts whole volumes, because the kubelet updates no `subPath`', () => {
    expect(JSON.stringify(podOf({ file: 'broker-federated' }))).not.toContain('subPath');
  });

  it('reaches nothing but DNS and the bundle endpoints where egress is restricted', () => {
    const egressOf = (file: string) => objectOf(render({ file }), 'NetworkPolicy', NAME).spec.egress;
    const dns = {
      ports: [
        { port: 53, protocol: 'UDP' },
        { port: 53, protocol: 'TCP' },
      ],
    };
    expect(egressOf('broker')).toEqual([dns]);
    expect(egressOf('broker-federated')).toMatchObject([
      dns,
      { ports: [{ port: 443 }, { port: 8443 }] },
      { ports: [{ port: 8088 }] },
    ]);
  });

  it.each<readonly [string, readonly string[]]>([
    ['broker', ['The broker: https://broker.shop.example', `${NAME}.gateway.svc:443`, 'registration entry']],
    ['broker-software', [`rollout status deployment/${NAME}`]],
  ])('says what to do next: %s', (file, words) => {
    const notes = notesOf({ file });
    for (const word of words) expect(notes).toContain(word);
    expect(notes).not.toMatch(/<no value>|%!/);
    expect(notes.includes('registration entry')).toBe(file === 'broker');
  });
});

const ENDPOINT = { trustDomain: 'a.example', url: 'https://a.example/b', profile: 'https_web' };
const OF_SPIFFE = { ...ENDPOINT, profile: 'https_spiffe' };
const BUNDLE = { trustDomain: 'a.example', configMap: 'a', key: 'b' };
const NO_SOCKET = { workloadApi: { enabled: false } };

describeChart('a broker is refused', () => {
  it.each<readonly [string, object, string]>([
    ['without a public URL', { publicUrl: '' }, 'broker.publicUrl is required'],
    ['without a signing key', { signingKeys: [] }, 'broker.signingKeys is required'],
    ['without TLS', { tls: { mode: '' } }, 'broker.tls.mode is required'],
    ['with a Secret of no name', { tls: { mode: 'secret' } }, 'broker.tls.secretName is required'],
    [
      'with two Secrets of one trust domain',
      { signingKeys: ['a', 'b'].map((secretName) => ({ trustDomain: 'a.example', secretName })) },
      'broker.signingKeys has a.example twice',
    ],
    [
      'with challenges that each replica makes for itself',
      { challengeKey: { name: '' } },
      'broker.challengeKey.name is required with 3 replicas',
    ],
    [
      'without a source of callers',
      { spiffe: NO_SOCKET },
      'broker.spiffe or broker.softwareKeys is required',
    ],
    [
      'with two bundles of one trust domain, which are never merged',
      { spiffe: { bundles: [BUNDLE, BUNDLE] } },
      'broker.spiffe.bundles has a.example twice',
    ],
    [
      'with two endpoints of one trust domain',
      { spiffe: { bundleEndpoints: [ENDPOINT, ENDPOINT] } },
      'broker.spiffe.bundleEndpoints has a.example twice',
    ],
    [
      'with an endpoint that only its own bundle would verify',
      { spiffe: { bundleEndpoints: [{ ...OF_SPIFFE, spiffeId: 'spiffe://a.example/spire/server' }] } },
      'broker.spiffe.bundles needs one of a.example',
    ],
    [
      'with an endpoint that nothing identifies',
      { spiffe: { bundleEndpoints: [OF_SPIFFE] } },
      'a.example needs a spiffeId with https_spiffe',
    ],
    [
      'with an identity that https_web does not check',
      { spiffe: { bundleEndpoints: [{ ...ENDPOINT, spiffeId: 'spiffe://a.example/s' }] } },
      'a.example needs a spiffeId with https_spiffe',
    ],
    [
      'with a password in an endpoint',
      { spiffe: { bundleEndpoints: [{ ...ENDPOINT, url: 'https://u:p@a.example' }] } },
      'broker.spiffe.bundleEndpoints holds a user or password',
    ],
    [
      'whose flags a variable overrides',
      { extraEnv: [{ name: 'PROOFGATE_ACCEPT_JWT_SVID', value: 'true' }] },
      'broker.extraEnv holds PROOFGATE_ACCEPT_JWT_SVID',
    ],
    [
      'that is killed while it drains',
      { settings: { drainTimeout: '60s' } },
      'broker.terminationGracePeriodSeconds',
    ],
    [
      'without a source of scrapes',
      { networkPolicy: { metricsFrom: [] } },
      'broker.networkPolicy allows no scraper',
    ],
    ['with TLS that ends elsewhere', { tls: { mode: 'none' } }, '/broker/tls/mode'],
    ['with a public URL in the clear', { publicUrl: 'http://broker' }, '/broker/publicUrl'],
    ['with a public URL that ends in a slash', { publicUrl: 'https://broker/' }, '/broker/publicUrl'],
    [
      'with keys outside their directory',
      { signingKeys: [{ trustDomain: '../etc', secretName: 'a' }] },
      '/broker/signingKeys/0/trustDomain',
    ],
  ])('%s', (_name, broker, words) => {
    const said = refusalOf({ file: 'broker', also: { broker } }) ?? '';
    expect(said).toContain(words);
  });
});
