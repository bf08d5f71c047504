/**
 * A cluster in which a user follows docs/tutorials/kubernetes.md, with fakes of the controllers, nodes and networks. Pods of Deployments
 * and Jobs are submitted, then run as processes with their volumes from the API server, together with a real Envoy.
 */
import { join } from 'node:path';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../src/protocol/strict-json.ts';
import { NAMESPACE } from '../support/chart/chart.ts';
import { type StartedContainer, startContainer } from '../support/chart/pod-process.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { startChild } from '../support/harness/child.ts';
import { envoyVersions, type RunningEnvoy, startEnvoyWith } from '../support/harness/envoy.ts';
import { adaptConfig, closeAtOnce, patient } from '../support/harness/envoy-config.ts';
import { freePort } from '../support/harness/free-port.ts';
import { type CommandResult, runProofgate } from '../support/harness/proofgate-command.ts';
import { httpGet, waitFor } from '../support/wait.ts';
import type { Cluster } from './cluster.ts';
import { FollowedPage } from './followed-page.ts';
import { Helm } from './helm.ts';
import { type ApiObject, type ObjectName, Objects } from './objects.ts';
import { HandRunPod, podOf, templateOf } from './pod.ts';
import { DOCUMENT, RELEASE_NAME, SITE_ID } from './site.ts';

const [CONTROL_PORT, VERIFIER_PORT] = [9193, 9191];

interface Ports {
  readonly control: number;
  readonly verifier: number;
  readonly gateway: number;
  readonly api: number;
}

/** Replacements in the document for loopback. All other text runs unchanged. */
function readsOf({ issuer, jwksUri }: Cluster, { control, gateway }: Ports) {
  return [
    ['https://proofgate-control.gateway.svc', `https://localhost:${control}`],
    ['https://localhost:8443', `https://localhost:${control}`],
    ['http://api.gateway.svc', `http://127.0.0.1:${gateway}`],
    ['Host: api.gateway.svc', `Host: 127.0.0.1:${gateway}`],
    ['http://localhost:8080', `http://127.0.0.1:${gateway}`],
    ['https://192.0.2.10:6443/openid/v1/jwks', jwksUri],
    ['https://kubernetes.default.svc.cluster.local', issuer],
    ['expected_scope: kubernetes.default.svc.cluster.local', `expected_scope: ${new URL(issuer).host}`],
    ['[10.96.0.0/12, 192.0.2.0/24]', '[127.0.0.0/8]'],
  ] as const;
}

export class ReleaseStage {
  readonly cluster: Cluster;
  readonly objects: Objects;
  /** For the document's release. */
  readonly helm: Helm;
  readonly page: FollowedPage;
  readonly origin: string;
  /** Address to which `helm test` connects. */
  readonly gateway: string;
  readonly controlUrl: string;
  readonly #ports: Ports;
  readonly #pods: HandRunPod[] = [];
  readonly #ends: (() => Promise<unknown>)[] = [];

  private constructor(cluster: Cluster, ports: Ports, page: FollowedPage) {
    this.cluster = cluster;
    this.objects = new Objects(cluster);
    this.helm = new Helm(cluster, RELEASE_NAME);
    this.page = page;
    this.#ports = ports;
    this.gateway = `127.0.0.1:${ports.gateway}`;
    this.origin = `http://${this.gateway}`;
    this.controlUrl = `https://localhost:${ports.control}`;
  }

  /** Prepares the environment; no step of the document has run yet. */
  static async prepare(cluster: Cluster): Promise<ReleaseStage> {
    const [control = 0, verifier = 0, gateway = 0, api = 0] = await Promise.all(
      Array.from({ length: 4 }, () => freePort()),
    );
    const ports = { control, verifier, gateway, api };
    const folder = join(cluster.folder, 'release');
    const page = await FollowedPage.open({
      document: DOCUMENT,
      folder,
      reads: readsOf(cluster, ports),
      functions: checkoutPath('test', 'kubernetes', 'cluster-of-one.sh'),
      env: { KUBECONFIG: cluster.kubeconfig, GIT_DIR: checkoutPath('.git') },
    });
    return new ReleaseStage(cluster, ports, page);
  }

  async startControl(): Promise<void> {
    const pod = await this.#podOf('control');
    await this.#start(pod, 'control', new Map([[CONTROL_PORT, this.#ports.control]]));
    await this.page.run(`printf %s '${pod.files.at('/')}' >control-root`);
  }

  async startVerifier(): Promise<void> {
    await this.#start(
      await this.#podOf('verifier'),
      'verifier',
      new Map([[VERIFIER_PORT, this.#ports.verifier]]),
    );
  }

  /** Starts the document's Envoy with the configuration that the chart rendered. */
  async startGateway(): Promise<RunningEnvoy> {
    const pod = await this.#podOf('envoy');
    const [, path = ''] = /--config-path (\S+)/.exec(pod.container('envoy').args.join(' ')) ?? [];
    const text = await pod.files.read(path);
    const tls = '/etc/envoy/verifier-tls';
    const yaml = adaptConfig(text.replaceAll(tls, pod.files.at(tls)), {
      verifier: { kind: 'tcp', host: '127.0.0.1', port: this.#ports.verifier },
      upstream: { host: '127.0.0.1', port: this.#ports.api },
      ingressPort: this.#ports.gateway,
      edits: [closeAtOnce, ...patient],
    });
    const version = envoyVersions.find((each) => pod.container('envoy').image.endsWith(`:v${each}`));
    if (version === undefined) throw new Error(`no test runs ${pod.container('envoy').image}`);
    const envoy = await startEnvoyWith(version, yaml, { listener: 'ingress' });
    this.#ends.push(() => envoy.stop());
    await this.#becomesAvailable('envoy');
    return envoy;
  }

  /** Starts the document's API. */
  async startApi(): Promise<void> {
    const { args } = (await this.#podOf('orders')).container('orders');
    const env = { HOST: '127.0.0.1', PORT: String(this.#ports.api) };
    const child = startChild({ command: process.execPath, args, env });
    this.#ends.push(() => child.stop());
    await waitFor('the API', async () => {
      const { status } = await httpGet(`http://127.0.0.1:${this.#ports.api}/`);
      return status === 200 ? true : undefined;
    });
    await this.#becomesAvailable('orders');
  }

  /** Runs an operator's command and expects success. */
  async ctl(...args: readonly string[]): Promise<JsonObject> {
    const result = await this.tryCtl(...args);
    if (result.exitCode !== 0) throw new Error(`ctl ${args.join(' ')}: ${result.stderr}`);
    const answer = parseStrictJson(result.stdout);
    if (!isJsonObject(answer)) throw new Error(`ctl ${args.join(' ')} did not answer an object`);
    return answer;
  }

  tryCtl(...args: readonly string[]): Promise<CommandResult> {
    const file = (name: string) => join(this.page.folder, name);
    const connection = ['--control-url', this.controlUrl, '--control-ca-file', file('ca.crt')];
    return runProofgate([
      ...['ctl', ...args, ...connection],
      ...['--token-file', file('bootstrap-token'), '--output', 'json'],
    ]);
  }

  async policy(name: string): Promise<JsonObject> {
    const { items } = await this.ctl('get', 'policies', '--site', SITE_ID);
    const policies = Array.isArray(items) ? items.filter(isJsonObject) : [];
    const found = policies.find((each) => each.display_name === name);
    if (found === undefined) throw new Error(`there is no policy ${name}`);
    return found;
  }

  /** Submits a pod; the fixture removes its files. */
  async submit(pod: ApiObject, node?: string): Promise<HandRunPod> {
    return this.keep(await HandRunPod.submit(this.objects, pod, node));
  }

  keep(pod: HandRunPod): HandRunPod {
    this.#pods.push(pod);
    return pod;
  }

  /** Registers a process that the fixture stops at its end. */
  keepRunning(container: StartedContainer): StartedContainer {
    this.#ends.push(() => container.service.stop());
    return container;
  }

  async #start(pod: HandRunPod, container: string, ports: ReadonlyMap<number, number>): Promise<void> {
    this.keepRunning(await startContainer(pod.container(container), pod.files, {}, ports));
    await this.#becomesAvailable(`${RELEASE_NAME}-${container}`);
  }

  /** Submits the first pod of a Deployment, as its controllers do. @param name suffix after the release's name */
  async #podOf(name: string): Promise<HandRunPod> {
    const own = ['control', 'verifier'].includes(name) ? `${RELEASE_NAME}-${name}` : name;
    const deployment = await this.objects.read(deploymentOf(own));
    return this.submit(podOf(templateOf(deployment), `${own}-0`, NAMESPACE));
  }

  /** Sets the status that a controller sets once the pod is ready, for which `kubectl rollout status` waits. */
  async #becomesAvailable(name: string): Promise<void> {
    const { generation } = (await this.objects.read(deploymentOf(name))).metadata;
    const one = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await this.objects.setStatus(deploymentOf(name), { observedGeneration: generation, ...one });
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0).reverse()) await end();
    for (const pod of this.#pods.splice(0)) await pod.remove();
    this.page.close();
  }
}

export function deploymentOf(name: string): ObjectName {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: NAMESPACE } };
}
