/**
 * A release of the chart in the cluster, run by hand: pods of its Deployments, submitted and then started as processes with the volumes
 * that the API server has for them, before a real Envoy.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../src/protocol/strict-json.ts';
import { SITE_ID, TARGET_NAME } from '../e2e/control/site-declaration.ts';
import { makeCertificates, type TestCertificates } from '../e2e/harness/certificates.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../e2e/harness/envoy.ts';
import { patient } from '../e2e/harness/envoy-config.ts';
import { type CommandResult, runProofgate } from '../e2e/harness/proofgate-command.ts';
import { closeAtOnce } from '../e2e/harness/stand.ts';
import { startUpstream, type Upstream } from '../e2e/harness/upstream.ts';
import { freePort } from '../fakes/free-port.ts';
import { NAMESPACE, RELEASE } from '../helm/chart.ts';
import { type StartedContainer, startContainer } from '../helm/pod-process.ts';
import type { Cluster } from './cluster.ts';
import { Helm } from './helm.ts';
import { type ApiObject, Objects } from './objects.ts';
import { HandRunPod, podOf, templateOf } from './pod.ts';
import { clusterSite } from './site.ts';

const [CONTROL_PORT, VERIFIER_PORT] = [9193, 9191];

interface Parts {
  readonly cluster: Cluster;
  readonly certificates: TestCertificates;
  readonly upstream: Upstream;
  readonly envoy: RunningEnvoy;
  readonly ports: { readonly control: number; readonly verifier: number };
}

export class ReleaseStage {
  readonly cluster: Cluster;
  readonly objects: Objects;
  readonly helm: Helm;
  readonly upstream: Upstream;
  readonly origin: string;
  /** Of the gateway: where `helm test` connects. */
  readonly gateway: string;
  readonly controlUrl: string;
  /** PEM, of Control's certificate. */
  readonly ca: string;
  readonly #parts: Parts;
  readonly #folder: string;
  readonly #pods: HandRunPod[] = [];
  readonly #running: StartedContainer[] = [];
  #bootstrapToken = '';

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.cluster = parts.cluster;
    this.upstream = parts.upstream;
    this.objects = new Objects(parts.cluster);
    this.helm = new Helm(parts.cluster);
    this.gateway = `${parts.envoy.host}:${parts.envoy.port}`;
    this.origin = `http://${this.gateway}`;
    this.controlUrl = `https://127.0.0.1:${parts.ports.control}`;
    this.ca = parts.certificates.ca.cert;
    this.#folder = join(parts.cluster.folder, 'release');
  }

  /** Gateway and API; of the chart nothing yet. */
  static async prepare(cluster: Cluster): Promise<ReleaseStage> {
    const certificates = await makeCertificates('localhost', 'spiffe://x/y', ['127.0.0.1']);
    const upstream = await startUpstream();
    const ports = { control: await freePort(), verifier: await freePort() };
    const envoy = await startEnvoy(envoyVersions.at(-1) ?? '', {
      verifier: { kind: 'tcp', host: '127.0.0.1', port: ports.verifier },
      upstream: { host: upstream.host, port: upstream.port },
      edits: [closeAtOnce, ...patient],
    }).catch(async (error) => {
      await upstream.stop();
      throw error;
    });
    const stage = new ReleaseStage({ cluster, certificates, upstream, envoy, ports });
    try {
      await mkdir(stage.#folder);
      await stage.#putWhatValuesName();
      return stage;
    } catch (error) {
      await stage.stop();
      throw error;
    }
  }

  /** What a platform engineer puts into the namespace. */
  async #putWhatValuesName(): Promise<void> {
    const { certificates } = this.#parts;
    const { cert, key } = certificates.server;
    const tls = { 'tls.crt': base64(cert), 'tls.key': base64(key) };
    await this.objects.mustCreate({
      ...inNamespace('Secret', 'control-tls'),
      type: 'kubernetes.io/tls',
      data: tls,
    });
    await this.objects.mustCreate({ ...inNamespace('ConfigMap', 'shop-ca'), data: { 'ca.crt': this.ca } });
  }

  /** For programs that trust the system's certificates: Control's is among them then. */
  get trustsControl(): Readonly<Record<string, string>> {
    return { NODE_EXTRA_CA_CERTS: this.#parts.certificates.ca.certPath };
  }

  /** Values of a release that has Control alone. */
  controlValues(): object {
    return {
      control: {
        enabled: true,
        publicUrls: [this.controlUrl],
        tls: { mode: 'secret', secretName: 'control-tls' },
        persistence: { keep: false },
        issuerCa: { configMap: 'kube-root-ca.crt' },
        settings: { allowIssuerNetwork: ['127.0.0.0/8'] },
      },
    };
  }

  /** The same with one verifier, which knows the site's keys and Control's CA. */
  async verifierValues(): Promise<object> {
    const pins = join(this.#folder, 'pins');
    const keysOf = async (purpose: string) => {
      const files = (await readdir(pins)).filter((file) => file.startsWith(purpose));
      const contents = files.map(async (file) => [file, await readFile(join(pins, file), 'utf8')] as const);
      return Object.fromEntries(await Promise.all(contents));
    };
    return {
      ...this.controlValues(),
      verifier: {
        enabled: true,
        authSite: SITE_ID,
        trust: { bundleKeys: await keysOf('bundle'), freshnessKeys: await keysOf('freshness') },
        source: {
          control: {
            url: this.controlUrl,
            tokenSecret: { name: 'proofgate-target' },
            ca: { configMap: 'shop-ca' },
          },
        },
        tls: { mode: 'none' },
        persistence: { enabled: true },
      },
    };
  }

  async startControl(): Promise<void> {
    const pod = await this.#podOf('control');
    const ports = new Map([[CONTROL_PORT, this.#parts.ports.control]]);
    this.#running.push(await startContainer(pod.container('control'), pod.files, {}, ports));
    this.#bootstrapToken = pod.files.at('/var/lib/proofgate/bootstrap-token');
  }

  async startVerifier(): Promise<void> {
    const pod = await this.#podOf('verifier');
    const ports = new Map([[VERIFIER_PORT, this.#parts.ports.verifier]]);
    this.#running.push(await startContainer(pod.container('verifier'), pod.files, {}, ports));
  }

  /** Declares the site, whatever comes of it. */
  async tryApplySite(): Promise<CommandResult> {
    const file = join(this.#folder, 'site.yaml');
    await writeFile(file, clusterSite(this.cluster, this.origin));
    return this.tryCtl('apply', '-f', file, '--token-dir', this.#folder);
  }

  /** What the site's verifier needs: its token as a Secret, and the keys that it pins. */
  async putTarget(): Promise<void> {
    const token = await readFile(join(this.#folder, `${TARGET_NAME}.token`), 'utf8');
    await this.objects.mustCreate({
      ...inNamespace('Secret', 'proofgate-target'),
      data: { token: base64(token) },
    });
    const pins = join(this.#folder, 'pins');
    await mkdir(pins);
    await this.ctl('signing-keys', '--site', SITE_ID, '--out-dir', pins);
  }

  /** An operator's command that succeeds. */
  async ctl(...args: readonly string[]): Promise<JsonObject> {
    const result = await this.tryCtl(...args);
    if (result.exitCode !== 0) throw new Error(`ctl ${args.join(' ')}: ${result.stderr}`);
    const answer = parseStrictJson(result.stdout);
    if (!isJsonObject(answer)) throw new Error(`ctl ${args.join(' ')} did not answer an object`);
    return answer;
  }

  tryCtl(...args: readonly string[]): Promise<CommandResult> {
    const ca = this.#parts.certificates.ca.certPath;
    const connection = ['--control-url', this.controlUrl, '--control-ca-file', ca];
    return runProofgate([
      ...['ctl', ...args, ...connection],
      ...['--token-file', this.#bootstrapToken, '--output', 'json'],
    ]);
  }

  async policy(name: string): Promise<JsonObject> {
    const { items } = await this.ctl('get', 'policies', '--site', SITE_ID);
    const policies = Array.isArray(items) ? items.filter(isJsonObject) : [];
    const found = policies.find((each) => each.display_name === name);
    if (found === undefined) throw new Error(`there is no policy ${name}`);
    return found;
  }

  /** Submits a pod; its files go with the stage. */
  async submit(pod: ApiObject, node?: string): Promise<HandRunPod> {
    return this.keep(await HandRunPod.submit(this.objects, pod, node));
  }

  keep(pod: HandRunPod): HandRunPod {
    this.#pods.push(pod);
    return pod;
  }

  /** A process that ends with the stage. */
  keepRunning(container: StartedContainer): StartedContainer {
    this.#running.push(container);
    return container;
  }

  /** The first pod of a Deployment, as its controllers would make it. */
  async #podOf(component: string): Promise<HandRunPod> {
    const name = `${RELEASE}-proofgate-${component}`;
    const deployment = await this.objects.read({ ...inNamespace('Deployment', name), apiVersion: 'apps/v1' });
    return this.submit(podOf(templateOf(deployment), `${name}-0`, NAMESPACE));
  }

  /** Everything but what helm installed. */
  async stop(): Promise<void> {
    for (const { service } of this.#running.splice(0).reverse()) await service.stop();
    for (const pod of this.#pods.splice(0)) await pod.remove();
    await this.#parts.envoy.stop();
    await this.#parts.upstream.stop();
    await this.#parts.certificates.remove();
  }
}

export function inNamespace(kind: string, name: string): ApiObject {
  return { apiVersion: 'v1', kind, metadata: { name, namespace: NAMESPACE } };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
