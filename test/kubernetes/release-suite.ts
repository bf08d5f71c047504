/**
 * Follows docs/tutorials/kubernetes.md from start to end in one cluster, with the documented workloads: tokens of its TokenRequest API,
 * verified through its own issuer, become keys whose requests are allowed. Each test continues from the one before.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { type Container, NAMESPACE, type PodSpec } from '../support/chart/chart.ts';
import { runContainer, startContainer } from '../support/chart/pod-process.ts';
import { readText, sectionOf } from '../support/docs/markdown.ts';
import { type CommandResult, errorCode, runProofgate } from '../support/harness/proofgate-command.ts';
import { httpGet, waitFor } from '../support/wait.ts';
import type { Cluster } from './cluster.ts';
import { Kubelet } from './kubelet.ts';
import { publishRootCa, serviceAccount } from './namespaces.ts';
import type { ApiObject } from './objects.ts';
import { bind, HandRunPod, podOf, templateOf } from './pod.ts';
import { deploymentOf, ReleaseStage } from './release-fixture.ts';
import {
  AUDIENCE,
  HELM_TEST_ACCOUNT,
  HELM_TEST_POLICY,
  RELEASE_NAME,
  SITE_ID,
  siteForTests,
} from './site.ts';
import { tokenSuite } from './token-suite.ts';
import { documentedWorkload, WORKLOAD_NAMESPACE } from './workload.ts';

const ORDER = '/v1/orders/7';
const NODE = 'node-1';
const OF_THE_RELEASE =
  /^(?:Deployment|NetworkPolicy|PersistentVolumeClaim|PodDisruptionBudget|Service|ServiceAccount) \w+\/proofgate-|^ClusterRoleBinding service-account-issuer-for/;
const VALUES = ['values.yaml', 'verifier.yaml', 'keys.yaml'];

export function releaseSuite(clusterOf: () => Cluster): void {
  let stage: ReleaseStage;
  let kubelet: Kubelet;
  beforeAll(async () => {
    stage = await ReleaseStage.prepare(clusterOf());
    kubelet = await Kubelet.start(stage.objects, NODE);
  });
  afterAll(async () => {
    await stage?.stop();
    await kubelet?.stop();
  });

  const paste = async (section: string) => {
    const said = await stage.page.paste(section);
    expect(said).not.toContain('would violate PodSecurity');
    return said;
  };
  const follows = (step: string, test: () => Promise<void>) => it(step, test);

  follows('1. Image and commands', async () => {
    expect(await paste('1. Image and commands')).toMatch(/^\d+\.\d+\.\d+$/m);
    const given = (await stage.page.read('docker-arguments')).split('\n');
    const args = given.flatMap((each) => /^([A-Z_]+)=./.exec(each)?.[1] ?? []);
    const asked = [...readText('Dockerfile').matchAll(/^ARG ([A-Z_]+)/gm)].map(([, name]) => name);
    expect(args.length).toBeGreaterThan(1);
    expect(asked).toEqual(expect.arrayContaining(args));
    const { repository, tag } = parse(await stage.page.read('values.yaml')).image;
    expect(given).toContain(`${repository}:${tag}`);
  });

  follows('2. Namespaces', async () => {
    await paste('2. Namespaces');
    // As controllers do.
    await publishRootCa(clusterOf(), WORKLOAD_NAMESPACE);
    await stage.objects.mustCreate(serviceAccount('default', NAMESPACE));
    // The namespace enforces the standard: it rejects a pod that violates it.
    const pod = { spec: { containers: [{ name: 'a', image: 'a' }] as unknown as Container[], volumes: [] } };
    const spec = { ...pod.spec, serviceAccountName: 'billing' };
    expect(await stage.objects.create(podOf({ spec }, 'weak', WORKLOAD_NAMESPACE))).toMatchObject({
      status: 403,
      body: { reason: 'Forbidden' },
    });
  });

  follows('3. Certificates', async () => {
    await paste('3. Certificates');
  });

  follows('With cert-manager, whose Secret has the same names in it', async () => {
    expect(await paste('With cert-manager')).toContain('certificate.cert-manager.io/envoy-tls created');
    const name = {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
      metadata: named('envoy-tls', NAMESPACE),
    };
    await stage.objects.setStatus(name, { conditions: [{ type: 'Ready', status: 'True' }] });
    const before = await stage.page.read('ca.crt');
    await stage.page.run('rm ca.crt');
    expect(await paste('With cert-manager')).toContain('certificate.cert-manager.io/envoy-tls condition met');
    expect(await stage.page.read('ca.crt')).toBe(before);
  });

  follows('4. Control', async () => {
    expect(await paste('4. Control')).toContain('STATUS: deployed');
    await stage.startControl();
    expect(await paste('4. Control')).toContain('successfully rolled out');
  });

  follows('5. The first operator', async () => {
    await paste('5. The first operator');
    await paste('5. The first operator');
  });

  follows('6. The cluster as a source, once those without a token may read its documents', async () => {
    const { issuer, jwks_uri } = JSON.parse(await paste('6. The cluster as a source'));
    const [source] = parse(await stage.page.read('site.yaml')).sources;
    expect([source.issuer, source.jwks_uri]).toEqual([issuer, jwks_uri]);
    await stage.page.run('mkdir tokens');
    const early = ['--token-dir', join(stage.page.folder, 'tokens')];
    const site = join(stage.page.folder, 'site.yaml');
    expect(errorCode(await stage.tryCtl('apply', '-f', site, ...early))).toBe('source_not_activated');
    const failed = await stage.ctl('get', 'sources', '--site', SITE_ID);
    expect(JSON.stringify(failed)).toContain('"code":"http_status"');
    const documented = /^```yaml\n([\s\S]*?)^```/m.exec(
      sectionOf(readText('docs/operate/control.md'), "A cluster's own issuer"),
    );
    expect(documented?.[1]).toBe(await stage.page.read('issuer-discovery.yaml'));
    expect(await paste('6. The cluster as a source')).toContain('activate source this cluster');
  });

  follows('7. The verifier, by an upgrade that leaves Control alone', async () => {
    const control = deploymentOf(`${RELEASE_NAME}-control`);
    const before = await stage.objects.read(control);
    await paste('7. The verifier');
    await paste('7. The verifier');
    expect((await stage.objects.read(control)).spec).toEqual(before.spec);
    await stage.startVerifier();
    const said = await paste('7. The verifier');
    expect(said).toContain('successfully rolled out');
    expect(said).toMatch(/ gateway +current +\d/);
  });

  follows('8. The gateway, which rejects unsigned requests', async () => {
    await paste('8. The gateway');
    await stage.startApi();
    await stage.startGateway();
    await paste('8. The gateway');
    await paste('8. The gateway');
    const answer = await paste('8. The gateway');
    expect(answer).toMatch(/^HTTP\/1\.1 401 /m);
    expect(answer).toMatch(/^x-proofgate-reason: invalid_request_proof\r?$/m);
  });

  follows('9. A workload that signs, and 10. the signed request', async () => {
    await paste('9. A workload that signs');
    const name = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: named('first-request', WORKLOAD_NAMESPACE),
    };
    const job = await stage.objects.read(name);
    const pod = await stage.submit(podOf(templateOf(job), 'first-request-0', WORKLOAD_NAMESPACE), NODE);
    expect(await runEnroll(pod)).toMatchObject({ exitCode: 0 });
    const said = await untilRequestEnds(pod);
    kubelet.keepLog(pod.object, 'request', `${said}\n`);
    await stage.objects.setPhase(pod.object, 'Succeeded');
    await stage.objects.setStatus(name, completed());
    const answer = (await paste('10. The signed request')).trim().split('\n').at(-1) ?? '';
    expect(JSON.parse(answer)).toEqual({ path: ORDER, caller: 'client:billing' });
    expect(readText('docs/tutorials/kubernetes.md')).toContain(answer);
    expect(await provenanceOf(pod.files.at('/var/run/proofgate/key.pem'))).toMatchObject({
      kubernetes_namespace: WORKLOAD_NAMESPACE,
      kubernetes_service_account: 'billing',
      kubernetes_pod: 'first-request-0',
      kubernetes_pod_uid: pod.object.metadata.uid,
      kubernetes_node: NODE,
    });
  });

  follows('takes certificates of cert-manager in place of its own', async () => {
    const files = [...VALUES, 'cert-manager.yaml'].map((file) => `--values ${file}`).join(' ');
    const line = `helm upgrade ${RELEASE_NAME} helm/proofgate --namespace ${NAMESPACE} ${files} --dry-run=server`;
    const rendered = await stage.page.run(line);
    expect(rendered.match(/^kind: Certificate$/gm)).toHaveLength(2);
    expect(rendered).not.toMatch(/secretName: (?:control|verifier)-tls$/m);
  });

  follows('lets a documented Job enroll with the token of its pod', async () => {
    const site = join(stage.page.folder, 'site-of-tests.yaml');
    await writeFile(site, siteForTests(await stage.page.read('site.yaml')));
    expect(await stage.tryCtl('apply', '-f', site)).toMatchObject({ exitCode: 0 });
    const job = await stage.objects.mustCreate(await documentedWorkload(stage, 'Job', 'billing'));
    const pod = await stage.submit(podOf(templateOf(job), 'billing-report-0', WORKLOAD_NAMESPACE), NODE);
    expect(await runEnroll(pod)).toMatchObject({ exitCode: 0 });
    await requestPasses(pod.files.at('/var/run/proofgate/key.pem'));
  });

  follows('lets a pod enroll with the init container that Control generates', async () => {
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
  });

  follows('lets the agent of a documented Deployment keep a key enrolled', async () => {
    const document = await documentedWorkload(stage, 'Deployment', 'billing');
    const deployment = await stage.objects.mustCreate(document);
    const pod = await stage.submit(podOf(templateOf(deployment), 'billing-0', WORKLOAD_NAMESPACE));
    const container = pod.container('proofgate-agent');
    const agent = stage.keepRunning(await startContainer(container, pod.files));
    expect((await httpGet(`http://${agent.address(9195)}/livez`)).status).toBe(200);
    await requestPasses(pod.files.at('/var/run/proofgate/key.pem'));
  });

  follows('passes `helm test --logs`, which has the log of a pod that is still there', async () => {
    const files = VALUES.map((file) => join(stage.page.folder, file));
    await stage.helm.upgrade({ files, also: await testValues() });
    const helmTest = stage.helm.startTest();
    try {
      const name = { apiVersion: 'v1', kind: 'Pod', metadata: named(HELM_TEST_ACCOUNT, NAMESPACE) };
      const made = await waitFor("helm's pod", () => stage.objects.find(name));
      await bind(stage.objects, made, NODE);
      const pod = stage.keep(await HandRunPod.of(stage.objects, made));
      expect(await runContainer(pod.container('enroll'), pod.files)).toMatchObject({ exitCode: 0 });
      const answer = await untilRequestEnds(pod);
      kubelet.keepLog(made, 'request', answer);
      await stage.objects.setPhase(name, 'Succeeded');
      expect({ ...(await helmTest.exited), said: helmTest.stderrLines }).toMatchObject({ code: 0, said: [] });
      const [, ...log] = helmTest.stdoutLines.join('\n').split(`POD LOGS: ${HELM_TEST_ACCOUNT}\n`);
      expect(log.map((text) => text.trim())).toEqual([answer.trim()]);
      expect(JSON.parse(answer)).toMatchObject({ caller: 'client:billing' });
    } finally {
      await helmTest.stop();
    }
  });

  describe('of the tokens', () => tokenSuite(() => stage));

  follows('Taking it away: nothing of the release is left but its claim', async () => {
    const left = async () =>
      [...(await stage.objects.all()).values()].filter((name) => OF_THE_RELEASE.test(name)).toSorted();
    expect(await left()).toContain(`Deployment ${NAMESPACE}/${RELEASE_NAME}-control`);
    await paste('Taking it away');
    expect(await left()).toEqual([`PersistentVolumeClaim ${NAMESPACE}/${RELEASE_NAME}-control`]);
    expect(stage.page.left).toEqual([]);
  });

  async function testValues(): Promise<object> {
    const test = {
      enabled: true,
      url: `${stage.origin}${ORDER}`,
      connectTo: stage.gateway,
      policy: String((await stage.policy(HELM_TEST_POLICY)).reference),
      audience: AUDIENCE,
      controlCa: { configMap: 'proofgate-control-ca' },
    };
    return { test };
  }

  /** Sends requests through the gateway with the key, until the verifier knows the key. */
  const requestPasses = (keyFile: string) =>
    waitFor('a request to pass', async () => {
      const { exitCode } = await runProofgate([
        'request',
        'GET',
        `${stage.origin}${ORDER}`,
        '--key',
        keyFile,
      ]);
      return exitCode === 0 ? true : undefined;
    });

  /** Restarts the pod until it succeeds: `restartPolicy: OnFailure`. */
  const untilRequestEnds = (pod: HandRunPod) =>
    waitFor('the request to pass', async () => {
      const ran = await runContainer(pod.container('request'), pod.files);
      return ran.exitCode === 0 ? ran.stdout : undefined;
    });

  /** The origin of a key, from the record of its enrollment at Control. */
  async function provenanceOf(keyFile: string): Promise<unknown> {
    const { enrolled } = JSON.parse(await readFile(`${keyFile}.enrollment.json`, 'utf8'));
    const { provenance } = await stage.ctl('get', 'keys', enrolled.derived_key.key_id);
    return provenance;
  }

  function runEnroll(pod: HandRunPod): Promise<CommandResult> {
    return runContainer(pod.container('proofgate-enroll'), pod.files);
  }
}

const named = (name: string, namespace: string): ApiObject['metadata'] => ({ name, namespace });

/** The status that the Job's controller sets. */
function completed(): object {
  const time = new Date().toISOString();
  const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: time });
  return {
    startTime: time,
    completionTime: time,
    succeeded: 1,
    conditions: ['SuccessCriteriaMet', 'Complete'].map(condition),
  };
}
