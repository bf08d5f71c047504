/** Tests which tokens of a real TokenRequest API enroll. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { makePodFolder, type PodFolder, runContainer } from '../support/chart/pod-process.ts';
import { type CommandResult, errorCode } from '../support/harness/proofgate-command.ts';
import { waitFor } from '../support/wait.ts';
import { makeRestricted, serviceAccount } from './namespaces.ts';
import { askForToken, containerIn, requestToken, templateOf } from './pod.ts';
import type { ReleaseStage } from './release-fixture.ts';
import { AUDIENCE } from './site.ts';
import { documentedWorkload, WORKLOAD_NAMESPACE } from './workload.ts';

const OTHER_NAMESPACE = 'staging';
const REFUSED = 3;

export function tokenSuite(stageOf: () => ReleaseStage): void {
  const folders: PodFolder[] = [];
  const account = (name: string, namespace = WORKLOAD_NAMESPACE) => serviceAccount(name, namespace);

  beforeAll(async () => {
    const { objects } = stageOf();
    await makeRestricted(stageOf().cluster, OTHER_NAMESPACE);
    await objects.mustCreate(account('billing', OTHER_NAMESPACE));
    await objects.mustCreate(account('reporting'));
  });
  afterAll(async () => {
    for (const folder of folders) await folder.remove();
  });

  /** Runs the init container of the documented Job with this token. */
  async function enroll(token: string, policy: string): Promise<CommandResult> {
    const folder = await makePodFolder(['/var/run/proofgate']);
    folders.push(folder);
    await folder.put('/var/run/secrets/proofgate/token', token);
    await folder.put('/etc/proofgate/control-ca/ca.crt', await stageOf().page.read('ca.crt'));
    const job = await documentedWorkload(stageOf(), 'Job', policy);
    const container = containerIn(templateOf(job).spec, 'proofgate-enroll');
    return runContainer(container, folder);
  }

  const tokenFor = (name: string, namespace: string, audiences: readonly string[]) =>
    requestToken(stageOf().objects, account(name, namespace), { audiences });

  it.each([
    ['for another audience', 'billing', WORKLOAD_NAMESPACE, ['elsewhere'], 'token_audience'],
    ['for another audience, too', 'billing', WORKLOAD_NAMESPACE, [AUDIENCE, 'elsewhere'], 'token_audience'],
    ["for the cluster's own API", 'billing', WORKLOAD_NAMESPACE, [], 'token_audience'],
    ['of another namespace', 'billing', OTHER_NAMESPACE, [AUDIENCE], 'token_subject'],
    ['of another service account', 'reporting', WORKLOAD_NAMESPACE, [AUDIENCE], 'token_subject'],
  ])('a token %s enrolls nothing', async (_what, name, namespace, audiences, code) => {
    const result = await enroll(await tokenFor(name, namespace, audiences), 'billing');
    expect([result.exitCode, errorCode(result)]).toEqual([REFUSED, code]);
  });

  it('no token lives for less than 600 s', async () => {
    const { objects } = stageOf();
    const statuses = [599, 600].map(async (expirationSeconds) => {
      const { status } = await askForToken(objects, account('billing'), {
        audiences: [AUDIENCE],
        expirationSeconds,
      });
      return status;
    });
    expect(await Promise.all(statuses)).toEqual([422, 201]);
  });

  describe('of a service account that is deleted', () => {
    let earlier = '';

    it('there is no new token, and the API server knows the earlier one no more', async () => {
      const { objects } = stageOf();
      const another = await tokenFor('reporting', WORKLOAD_NAMESPACE, [AUDIENCE]);
      earlier = await tokenFor('reporting', WORKLOAD_NAMESPACE, [AUDIENCE]);
      expect(await isAuthentic(another)).toBe(true);
      await objects.remove(account('reporting'));
      expect(await askForToken(objects, account('reporting'), { audiences: [AUDIENCE] })).toMatchObject({
        status: 404,
      });
      // The API server may cache a successful authentication for some seconds.
      await waitFor('the token to be refused', async () => ((await isAuthentic(earlier)) ? undefined : true));
    });

    it('the earlier token enrolls until its end, or until an operator blocks the subject (docs/operate/control.md "Tokens")', async () => {
      const enrolled = await enroll(earlier, 'reporting');
      expect(enrolled).toMatchObject({ exitCode: 0 });
      const [, keyId = ''] = /^key id +(\S+)$/m.exec(enrolled.stdout) ?? [];
      await stageOf().ctl('revoke', keyId, '--block-subject', '--yes');
      const result = await enroll(earlier, 'reporting');
      expect([result.exitCode, errorCode(result)]).toEqual([REFUSED, 'subject_blocked']);
    });
  });

  /** The result of the API server's TokenReview. */
  async function isAuthentic(token: string): Promise<boolean> {
    const { body } = await stageOf().cluster.call({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/tokenreviews',
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, audiences: [AUDIENCE] },
      },
    });
    return (body.status as { readonly authenticated?: boolean }).authenticated === true;
  }
}
