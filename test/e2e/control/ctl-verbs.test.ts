/** Plays every verb of `proofgate ctl` against a running Control, as a transcript. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runInProcess } from '../../cli/in-process.ts';
import { playTranscript } from '../../cli/play-transcript.ts';
import { parseTranscript } from '../../cli/transcript.ts';
import { ControlStage } from './control-fixture.ts';
import { AUDIENCE, SITE_ID } from './site-declaration.ts';

const TRANSCRIPT = join(import.meta.dirname, 'ctl-verbs.txt');

let stage: ControlStage;
const names: Record<string, string> = {};

beforeAll(async () => {
  stage = await ControlStage.start();
  const scope = stage.issuer.issuer.slice('https://'.length);
  const reviewed = await stage.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  expect(reviewed.exitCode).toBe(4);
  const [waiting] = await stage.list('enrollments');
  const { keyId } = await stage.enroll('billing');
  Object.assign(names, {
    CONTROL: stage.controlUrl,
    DIR: stage.directory,
    ENROLLMENT: String(waiting?.enrollment_id),
    ISSUER: stage.issuer.issuer,
    KEY: keyId,
    SCOPE: scope,
    TOKEN: stage.tokenFile,
  });
}, 60_000);
afterAll(async () => stage?.stop());

/** Two sources, policies, targets and access tokens of one name. */
async function addTwins(): Promise<void> {
  const api = await stage.api();
  const site = `/v1/sites/${SITE_ID}`;
  const [source] = await api.list(`${site}/sources`);
  const { issuer, jwksUri: jwks_uri } = stage.issuer;
  for (const audience of [`${AUDIENCE}-1`, `${AUDIENCE}-2`]) {
    const coordinates = { issuer, jwks_uri, audience };
    await api.create(`${site}/sources`, { kind: 'oidc_jwks', display_name: 'twin', ...coordinates });
    await api.create(`${site}/enrollment-policies`, {
      display_name: 'twin',
      source_id: source?.source_id,
      source_revision: 1,
      client_id: 'billing',
      approval: 'manual',
      max_key_lifetime_seconds: 3600,
      verified_issuer: issuer,
      verified_subject: `system:serviceaccount:prod:${audience}`,
    });
    await api.create(`${site}/targets`, { name: 'twin' });
    const scope = { kind: 'site', id: SITE_ID };
    await api.create('/v1/access-tokens', { name: 'twin', role: 'viewer', scope });
  }
  await api.create(`${site}/targets`, { name: 'gateway-1' });
  await api.close();
}

it('suspends and resumes a source by its name', async () => {
  const env = { PROOFGATE_CONTROL_URL: stage.controlUrl, PROOFGATE_TOKEN_FILE: stage.tokenFile };
  const [source] = await stage.list('sources');
  for (const [verb, shown] of [
    ['suspend', 'suspended'],
    ['resume', 'publishing'],
  ] as const) {
    const run = await runInProcess(['ctl', verb, 'test cluster', '--site', SITE_ID], env);
    expect(run).toMatchObject({ exitCode: 0, stdout: `${source?.source_id} revision 1 is ${shown}\n` });
  }
  await stage.awaitSource(String(source?.source_id), 'active');
});

it('plays ctl-verbs.txt', async () => {
  await addTwins();
  const transcript = parseTranscript(readFileSync(TRANSCRIPT, 'utf8'));
  await playTranscript(transcript, (args, { env }) => runInProcess(args, env), stage.directory, names);
}, 60_000);
