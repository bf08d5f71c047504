/**
 * Tests `proofgate agent` as docs/operate/workload.yaml runs it, against a real Control, with its key used at a real Envoy and
 * verifier: no request is denied while keys are replaced.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { isSeq, parse, parseAllDocuments } from 'yaml';
import { readEnrolledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { FollowedGateway } from '../../support/control/followed-gateway.ts';
import type { PolicyName } from '../../support/control/site-declaration.ts';
import { readText } from '../../support/docs/markdown.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { proofgateCommand } from '../../support/harness/program.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

const ALLOWED = { status: 200, reason: '' };

let stage: ControlStage;
let gateway: FollowedGateway;
beforeAll(async () => {
  stage = await ControlStage.start();
  gateway = await FollowedGateway.start(stage);
});
afterAll(async () => {
  await gateway?.stop();
  await stage?.stop();
});

/** The command of the container in the document. */
function documentedCommand(): readonly string[] {
  const [deployment] = parseAllDocuments(readText('docs/operate/workload.yaml'));
  const command = deployment?.getIn(['spec', 'template', 'spec', 'initContainers', 0, 'command']);
  if (!isSeq(command)) throw new Error('there is no command');
  return command.items.map(String);
}

it('is the sidecar that Control prints, but for what is marked to be set', async () => {
  const { policy_id: id, reference } = await stage.policy('billing');
  const { agent_command, native_sidecar } = await stage.ctl('get', 'command', String(id));
  const [printed] = parse(String(native_sidecar)).initContainers;
  const [document] = parseAllDocuments(readText('docs/operate/workload.yaml'));
  const pod = document?.toJS().spec.template.spec;
  const { resources: _resources, ...documented } = pod.initContainers[0];
  const set = ['image', 'command', 'securityContext'];
  const without = (container: object) => Object.entries(container).filter(([name]) => !set.includes(name));
  expect(Object.fromEntries(without(printed))).toEqual(Object.fromEntries(without(documented)));
  // The test's container sets itself what the document sets for the whole pod.
  const { runAsNonRoot, seccompProfile } = pod.securityContext;
  expect(printed.securityContext).toEqual({
    ...documented.securityContext,
    runAsNonRoot,
    seccompProfile,
  });
  const here = documented.command.map((word: string) =>
    word.replace('https://control.shop.example', stage.controlUrl).replace('epr_7f3c9a', String(reference)),
  );
  expect([...printed.command].toSorted()).toEqual(here.toSorted());
  expect(String(agent_command).split(' ')).toEqual(printed.command.slice(0, -1));
});

const agents: RunningAgent[] = [];

class RunningAgent {
  readonly keyFile: string;
  readonly child: Child;
  readonly #adminUrl: string;
  readonly #tokenFile: string;

  private constructor(keyFile: string, tokenFile: string, child: Child, adminUrl: string) {
    this.keyFile = keyFile;
    this.#tokenFile = tokenFile;
    this.child = child;
    this.#adminUrl = adminUrl;
  }

  static async start(policy: PolicyName): Promise<RunningAgent> {
    const folder = join(stage.directory, `agent-${policy}`);
    await mkdir(folder);
    const [keyFile, tokenFile] = [join(folder, 'key.pem'), join(folder, 'token')];
    await writeFile(tokenFile, stage.workloadToken(policy));
    const { reference } = await stage.policy(policy);
    const adminListen = `127.0.0.1:${await freePort()}`;
    const here: { readonly [flag: string]: string } = {
      'control-url': stage.controlUrl,
      policy: String(reference),
      'proof-file': tokenFile,
      'private-key-out': keyFile,
      'admin-listen': adminListen,
    };
    const [, ...args] = documentedCommand();
    const changed = args.map((arg) =>
      arg.replace(/^--([a-z-]+)=.*$/, (_all, flag) => `--${flag}=${here[flag]}`),
    );
    const child = startChild(proofgateCommand(changed));
    const agent = new RunningAgent(keyFile, tokenFile, child, `http://${adminListen}`);
    agents.push(agent);
    return agent;
  }

  readiness() {
    return httpGet(`${this.#adminUrl}/readyz`);
  }

  ready(): Promise<true> {
    return waitFor('the agent to be ready', async () =>
      (await this.readiness()).status === 200 ? true : undefined,
    );
  }

  async keyId(): Promise<string | undefined> {
    return (await readEnrolledKeyFile(this.keyFile)).state.enrolled?.key.keyId;
  }

  async putToken(token: string): Promise<void> {
    await writeFile(`${this.#tokenFile}.new`, token);
    await rename(`${this.#tokenFile}.new`, this.#tokenFile);
  }
}

it('replaces keys while every request passes', async () => {
  const agent = await RunningAgent.start('brief');
  try {
    await agent.ready();
    const seen = [await agent.keyId()];
    let sent = 0;
    for (let i = 0; i < 2; i++) {
      await agent.putToken(stage.workloadToken('brief'));
      await waitFor('another key', async () => {
        // Propagation was waited for: from the first request on, each key is known.
        expect(await gateway.send(agent.keyFile)).toMatchObject(ALLOWED);
        sent += 1;
        const keyId = await agent.keyId();
        return seen.includes(keyId) ? undefined : seen.push(keyId);
      });
      expect(await gateway.send(agent.keyFile)).toMatchObject(ALLOWED);
    }
    expect(new Set(seen).size).toBe(3);
    expect(sent).toBeGreaterThan(20);
  } finally {
    expect(await agent.child.stop()).toEqual({ code: 0, signal: null });
  }
  expect(agent.child.stderrLines.join('\n')).not.toMatch(/"level":"(?:warn|error)"/);
});

it('waits for an operator, and says so', async () => {
  const agent = await RunningAgent.start('reviewed');
  try {
    const pending = await waitFor('it to wait', async () => {
      const { status, text } = await agent.readiness();
      return status === 503 ? /enrollment (enr_[A-Za-z0-9]+): it awaits approval/.exec(text)?.[1] : undefined;
    });
    await stage.ctl('approve', pending);
    await agent.ready();
    expect(await gateway.send(agent.keyFile)).toMatchObject(ALLOWED);
  } finally {
    await agent.child.stop();
  }
});

it('tells a token that Control does not take, and goes on with the next one', async () => {
  const agent = await RunningAgent.start('billing');
  try {
    await agent.ready();
    const before = await agent.keyId();
    await agent.putToken(stage.workloadToken('reporting', { expiresInSeconds: 7200 }));
    await waitFor('it to be refused', async () => {
      const { status, text } = await agent.readiness();
      return status === 200 && text.includes('token_subject') ? true : undefined;
    });
    expect(await agent.keyId()).toBe(before);
    await agent.putToken(stage.workloadToken('billing', { expiresInSeconds: 7200 }));
    await waitFor('another key', async () => ((await agent.keyId()) === before ? undefined : true));
    expect(await gateway.send(agent.keyFile)).toMatchObject(ALLOWED);
  } finally {
    await agent.child.stop();
  }
});

it('nothing that it said is secret', () => {
  const said = agents.flatMap(({ child }) => [...child.stderrLines, ...child.stdoutLines]);
  expect(said.length).toBeGreaterThan(10);
  expect(stage.secrets.foundIn(said.join('\n'))).toEqual([]);
});
