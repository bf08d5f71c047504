/**
 * Checks the pods that Istio's own injection makes with the chart's sidecar (scripts/make-gateway-dumps.sh): the place of the
 * verifier, the proxy's access to its socket, and whether Istio's proxies are native sidecars.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { type Container, describeChart, objectOf, type PodSpec, render } from '../support/chart/chart.ts';
import { misfitsIn } from '../support/chart/kubeconform.ts';
import { readText } from '../support/docs/markdown.ts';
import { freePort } from '../support/harness/free-port.ts';

const VERIFIER = 'proofgate';
const PROXY = 'istio-proxy';
const DUMPS = ['injected-native', 'injected-containers'];

function dumpOf(name: string): string {
  return readText(`test/gateways/dumps/${name}.yaml`);
}

function podIn(dump: string, name: string): PodSpec {
  const pods = parseAllDocuments(dumpOf(dump)).map((document) => document.toJS());
  return pods.find((pod) => pod?.metadata.name === name).spec;
}

/** The injection template that the chart gives to istiod. */
function chartsTemplate(): PodSpec {
  const { data } = objectOf(render({ file: 'sidecar-istio' }), 'ConfigMap', 'pg-verifier-sidecar');
  const { templates } = parse(data?.['istiod-values.yaml'] ?? '').sidecarInjectorWebhook;
  return parse(templates.verified).spec;
}

function verifierOf(pod: PodSpec): Container {
  const found = containersOf(pod).find(({ name }) => name === VERIFIER);
  if (found === undefined) throw new Error('no verifier');
  return found;
}

/** Containers in the kubelet's start order. */
function containersOf({ containers, initContainers = [] }: PodSpec): readonly Container[] {
  return [...initContainers, ...containers];
}

/** The order of flags and mounts means nothing. */
function inOneOrder<C extends Pick<Container, 'args' | 'volumeMounts'>>(container: C | undefined) {
  if (container === undefined) throw new Error('no container');
  return {
    ...container,
    args: container.args?.toSorted(),
    volumeMounts: container.volumeMounts.toSorted((a, b) => a.name.localeCompare(b.name)),
  };
}

function namesOf(pod: PodSpec): readonly string[] {
  return containersOf(pod).map(({ name, restartPolicy }) =>
    restartPolicy === undefined ? name : `${name} (${restartPolicy})`,
  );
}

describeChart("the chart's sidecar, injected by Istio", () => {
  it.each(DUMPS)('fits the schema of pods: %s', (dump) => {
    expect(misfitsIn(dumpOf(dump))).toBe('');
  });

  it.each(DUMPS.flatMap((dump) => ['gateway', 'workload'].map((pod) => [dump, pod] as const)))(
    'is what the chart has now, and the proxy has its socket, as its user: %s, %s',
    (dump, name) => {
      const template = chartsTemplate();
      const pod = podIn(dump, name);
      const [verifier, proxy] = [VERIFIER, PROXY].map((one) => {
        const found = containersOf(pod).filter((container) => container.name === one);
        expect(found).toHaveLength(1);
        return found[0];
      });
      const { image: _, livenessProbe, readinessProbe, ...wanted } = verifierOf(template);
      expect(inOneOrder(verifier)).toMatchObject(inOneOrder(wanted));
      expect(wanted.securityContext).toMatchObject({ runAsUser: 1337 });
      const socket = wanted.volumeMounts.find((mount) => mount.name === 'proofgate-socket');
      expect(proxy?.volumeMounts).toContainEqual(socket);
      expect(proxy?.image).toMatch(/proxyv2/);
      expect(proxy?.securityContext).toMatchObject({ runAsUser: 1337 });
      expect(pod.volumes).toEqual(expect.arrayContaining([...(template.volumes ?? [])]));
    },
  );

  it('starts in front of a gateway', () => {
    for (const dump of DUMPS) {
      expect(namesOf(podIn(dump, 'gateway'))).toEqual(['proofgate (Always)', 'istio-proxy']);
    }
  });

  it('starts in front of the workload: behind a proxy that is a native sidecar, or before traffic is led to the proxy', () => {
    expect(namesOf(podIn('injected-native', 'workload'))).toEqual([
      'istio-init',
      'istio-proxy (Always)',
      'proofgate (Always)',
      'orders',
    ]);
    expect(namesOf(podIn('injected-containers', 'workload'))).toEqual([
      'proofgate (Always)',
      'istio-init',
      'orders',
      'istio-proxy',
    ]);
  });

  // Istio routes HTTP probes through the proxy's container, which in a gateway's pod starts only after this one.
  it.each(DUMPS)('waits in its start for nothing but itself: %s', (dump) => {
    for (const name of ['gateway', 'workload']) {
      const { livenessProbe, startupProbe } = verifierOf(podIn(dump, name));
      expect(livenessProbe?.httpGet?.port).toBe(15020);
      expect(Object.keys(startupProbe ?? {}).toSorted()).toEqual([
        'exec',
        'failureThreshold',
        'periodSeconds',
        'timeoutSeconds',
      ]);
    }
  });

  it('has started when it answers what its liveness probe asks', async () => {
    const { livenessProbe, startupProbe } = verifierOf(chartsTemplate());
    const exitWhen = async (answer: number | undefined) => {
      const server = createServer((request, response) => {
        response.statusCode = request.url === livenessProbe?.httpGet?.path ? (answer ?? 0) : 404;
        response.end();
      });
      const port = await freePort();
      if (answer !== undefined) await once(server.listen(port, '127.0.0.1'), 'listening');
      const [, ...args] = startupProbe?.exec?.command ?? [];
      const { status } = await exitOf(
        args.map((one) => one.replace(`:${livenessProbe?.httpGet?.port}/`, `:${port}/`)),
      );
      server.close();
      return status;
    };
    expect([await exitWhen(200), await exitWhen(503), await exitWhen(undefined)]).toEqual([0, 1, 1]);
  });
});

function exitOf(args: readonly string[]): Promise<{ readonly status: number | null }> {
  const child = spawn(process.execPath, args);
  return once(child, 'exit').then(([status]) => ({ status }));
}
