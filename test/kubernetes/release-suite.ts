/**
 * A release of the chart and the documented workloads in one cluster: tokens of its TokenRequest API, verified through its own issuer,
 * become keys whose requests pass. In order, as a platform engineer does it: each test goes on from the one before.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readText, sectionOf } from '../docs/markdown.ts';
import { AUDIENCE, SITE_ID } from '../e2e/control/site-declaration.ts';
import { type CommandResult, errorCode, runProofgate } from '../e2e/harness/proofgate-command.ts';
import { httpGet, waitFor } from '../e2e/harness/wait.ts';
import { type PodSpec, RELEASE } from '../helm/chart.ts';
import { runContainer, startContainer } from '../helm/pod-process.ts';
import type { Cluster } from './cluster.ts';
import { Kubelet } from './kubelet.ts';
import { makeRestricted, serviceAccount } from './namespaces.ts';
import type { ApiObject } from './objects.ts';
import { bind, HandRunPod, podOf, templateOf } from './pod.ts';
import { inNamespace, ReleaseStage } from './release-stage.ts';
import { HELM_TEST_ACCOUNT, HELM_TEST_POLICY } from './site.ts';
import { tokenSuite } from './token-suite.ts';
import { documentedWorkload, WORKLOAD_NAMESPACE } from './workload.ts';

const TIMEOUT_MS = 180_000;
/** A look of the agent, a round of Control's jobs, a poll of the verifier. */
const WAIT_MS = 30_000;
const ORDER = '/v1/orders/7';
const NODE = 'node-1';

/** In docs/control.md. */
function documentedBinding(): ApiObject {
  const section = sectionOf(readText('docs/control.md'), "A cluster's own issuer");
  const [, text = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(section) ?? [];
  return parse(text);
}

export function releaseSuite(clusterOf: () => Cluster): void {
  let stage: ReleaseStage;
  let kubelet: Kubelet;
  beforeAll(async () => {
    stage = await ReleaseStage.prepare(clusterOf());
    await makeRestricted(clusterOf(), WORKLOAD_NAMESPACE);
    await stage.objects.mustCreate(serviceAccount('billing', WORKLOAD_NAMESPACE));
    kubelet = await Kubelet.start(stage.objects, NODE);
  }, TIMEOUT_MS);
  afterAll(async () => {
    await stage?.stop();
    await stage?.helm.uninstall();
    await kubelet?.stop();
  }, TIMEOUT_MS);

  /** As any program that has the key: through the gateway, until it is known there. */
  const requestPasses = (keyFile: string) =>
    waitFor('a request to pass', WAIT_MS, async () => {
      const { exitCode } = await runProofgate([
        'request',
        'GET',
        `${stage.origin}${ORDER}`,
        '--key',
        keyFile,
      ]);
      return exitCode === 0 ? true : undefined;
    });

  it(
    'has Control, which runs as it was installed',
    async () => {
      await stage.helm.install({ also: stage.controlValues() });
      await stage.startControl();
    },
    TIMEOUT_MS,
  );

  it(
    "takes the cluster's own issuer as source, once those without a token may read its documents",
    async () => {
      expect(errorCode(await stage.tryApplySite())).toBe('source_not_activated');
      const failed = await stage.ctl('get', 'sources', '--site', SITE_ID);
      expect(JSON.stringify(failed)).toContain('"code":"http_status"');
      await stage.objects.mustCreate(documentedBinding());
      expect(await stage.tryApplySite()).toMatchObject({ exitCode: 0 });
    },
    TIMEOUT_MS,
  );

  it(
    'gets a verifier by an upgrade that leaves Control alone',
    async () => {
      await stage.putTarget();
      const control = { ...inNamespace('Deployment', `${RELEASE}-proofgate-control`), apiVersion: 'apps/v1' };
      const before = await stage.objects.read(control);
      await stage.helm.upgrade({ also: await stage.verifierValues() });
      expect((await stage.objects.read(control)).spec).toEqual(before.spec);
      await stage.startVerifier();
    },
    TIMEOUT_MS,
  );

  it(
    'lets a documented Job enroll with the token of its pod, and its requests pass',
    async () => {
      const job = await stage.objects.mustCreate(await documentedWorkload(stage, 'Job', 'billing'));
      const pod = await stage.submit(podOf(templateOf(job), 'billing-report-0', WORKLOAD_NAMESPACE), NODE);
      expect(await runEnroll(pod)).toMatchObject({ exitCode: 0 });
      const keyFile = pod.files.at('/var/run/proofgate/key.pem');
      await requestPasses(keyFile);
      expect(stage.upstream.requests.at(-1)?.url).toBe(ORDER);
      expect(await provenanceOf(keyFile)).toMatchObject({
        kubernetes_namespace: WORKLOAD_NAMESPACE,
        kubernetes_service_account: 'billing',
        kubernetes_pod: 'billing-report-0',
        kubernetes_pod_uid: pod.object.metadata.uid,
        kubernetes_node: NODE,
      });
    },
    TIMEOUT_MS,
  );

  it(
    'lets a pod enroll with the init container that Control generates',
    async () => {
      const { policy_id: policy } = await stage.policy('billing');
      const { init_container: snippet } = await stage.ctl('get', 'command', String(policy));
      const spec: PodSpec = parse(String(snippet));
      const [enroller] = spec.initContainers ?? [];
      if (enroller === undefined) throw new Error('no init container');
      const { securityContext = {}, volumeMounts } = enroller;
      const signer = { name: 'app', image: 'app', command: [], args: [], securityContext, volumeMounts };
      const template = { spec: { ...spec, containers: [signer] } };
      const pod = await stage.submit(podOf(template, 'generated', WORKLOAD_NAMESPACE));
      expect(await runEnroll(pod)).toMatchObject({ exitCode: 0 });
      await requestPasses(pod.files.at('/var/run/proofgate/key.pem'));
    },
    TIMEOUT_MS,
  );

  it(
    'lets the agent of a documented Deployment keep a key enrolled',
    async () => {
      const document = await documentedWorkload(stage, 'Deployment', 'billing');
      const deployment = await stage.objects.mustCreate(document);
      const pod = await stage.submit(podOf(templateOf(deployment), 'billing-0', WORKLOAD_NAMESPACE));
      const container = pod.container('proofgate-agent');
      const agent = stage.keepRunning(await startContainer(container, pod.files, stage.trustsControl));
      expect((await httpGet(`http://${agent.address(9195)}/livez`)).status).toBe(200);
      await requestPasses(pod.files.at('/var/run/proofgate/key.pem'));
    },
    TIMEOUT_MS,
  );

  it(
    'passes `helm test --logs`, which has the log of a pod that is still there',
    async () => {
      await stage.helm.upgrade({ also: await withTest() });
      const helmTest = stage.helm.startTest();
      try {
        const name = inNamespace('Pod', HELM_TEST_ACCOUNT);
        const made = await waitFor("helm's pod", WAIT_MS, () => stage.objects.find(name));
        await bind(stage.objects, made, NODE);
        const pod = stage.keep(await HandRunPod.of(stage.objects, made));
        expect(await runContainer(pod.container('enroll'), pod.files)).toMatchObject({ exitCode: 0 });
        // Started again until it succeeds: `restartPolicy: OnFailure`.
        const { stdout: answer } = await waitFor('the request to pass', WAIT_MS, async () => {
          const ran = await runContainer(pod.container('request'), pod.files);
          return ran.exitCode === 0 ? ran : undefined;
        });
        kubelet.keepLog(made, 'request', answer);
        await stage.objects.setPhase(name, 'Succeeded');
        expect({ ...(await helmTest.exited), said: helmTest.stderrLines }).toMatchObject({
          code: 0,
          said: [],
        });
        const [, ...log] = helmTest.stdoutLines.join('\n').split(`POD LOGS: ${HELM_TEST_ACCOUNT}\n`);
        expect(log.map((text) => text.trim())).toEqual([answer.trim()]);
        expect(answer.trim()).not.toBe('');
      } finally {
        await helmTest.stop();
      }
    },
    TIMEOUT_MS,
  );

  describe('of the tokens', () => tokenSuite(() => stage));

  async function withTest(): Promise<object> {
    const test = {
      enabled: true,
      url: `${stage.origin}${ORDER}`,
      connectTo: stage.gateway,
      policy: String((await stage.policy(HELM_TEST_POLICY)).reference),
      audience: AUDIENCE,
      controlCa: { configMap: 'shop-ca' },
    };
    return { ...(await stage.verifierValues()), test };
  }

  /** What stands behind a key, by what Control has of its enrollment. */
  async function provenanceOf(keyFile: string): Promise<unknown> {
    const { enrolled } = JSON.parse(await readFile(`${keyFile}.enrollment.json`, 'utf8'));
    const { provenance } = await stage.ctl('get', 'keys', enrolled.derived_key.key_id);
    return provenance;
  }

  function runEnroll(pod: HandRunPod): Promise<CommandResult> {
    return runContainer(pod.container('proofgate-enroll'), pod.files, stage.trustsControl);
  }
}
