/**
 * Runs the examples of the SDKs, with their HTTP clients, through a real Envoy and verifier. Envoy is their HTTP proxy, so that
 * they send to the site's own origin.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { useEnvironment } from '../e2e/environment/environment.ts';
import { AUTHORITY, ROUTES } from '../e2e/environment/routes.ts';
import { AUTH_SITE, CLIENT_ISSUER, TRUST_DOMAIN } from '../e2e/environment/site.ts';
import { envoyVersions } from '../e2e/harness/envoy.ts';
import { GO_ENV, MISSING_GO, MISSING_PYTHON, PREPARE_TIMEOUT_MS, PYTHON_ENV } from './drivers.ts';
import { writeEnrolledKey } from './key-files.ts';

const environment = useEnvironment(['usual']);
const version = envoyVersions[envoyVersions.length - 1] ?? '';
const ORIGIN = `http://${AUTHORITY}`;

const python = (file: string) => ['python3', `sdk/python/examples/${file}.py`];
const EXAMPLES = [
  ['httpx', python('with_httpx'), '200 200', PYTHON_ENV, MISSING_PYTHON],
  ['httpx, async', python('with_httpx_async'), '200', PYTHON_ENV, MISSING_PYTHON],
  ['requests', python('with_requests'), '200', PYTHON_ENV, MISSING_PYTHON],
  ['urllib and sign()', python('with_urllib'), '200', PYTHON_ENV, MISSING_PYTHON],
  ['Go', ['go', 'run', '-C', 'sdk/go', './examples/orders'], '200 200', GO_ENV, MISSING_GO],
] as const;

describe.each(EXAMPLES)('the example with %s', (_name, [command = '', ...args], expected, env, missing) => {
  const itRuns = missing === undefined ? it : it.skip;

  itRuns(
    'is allowed',
    async () => {
      const gateway = await environment.gateway(version);
      const proxy = `http://${gateway.envoy.host}:${gateway.envoy.port}`;
      const ended = await run(command, [...args, keyFile(), ORIGIN], {
        ...env,
        http_proxy: proxy,
        NO_PROXY: '',
      });
      expect(ended).toEqual({ code: 0, stdout: `${expected}\n`, stderr: '' });
    },
    PREPARE_TIMEOUT_MS,
  );
});

function keyFile(): string {
  const { derivedKeys, directory } = environment.site;
  return writeEnrolledKey(directory, 'sdk', {
    key: derivedKeys.dk_billing.privateKey,
    authSite: AUTH_SITE,
    key_id: 'dk_billing',
    issuer: CLIENT_ISSUER,
    trust_domain: TRUST_DOMAIN,
    subject: 'client:billing',
    expiresAt: '2099-01-01T00:00:00Z',
    profiles: [ROUTES.readOrder, ROUTES.createOrder].map(({ audience, method, path_template, route_id }) => ({
      ...{ route_id, method, path_template, audience, origins: [ORIGIN], signed_headers: [], body: 'bound' },
    })),
  });
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(command, args, { cwd: fileURLToPath(new URL('../../', import.meta.url)), env });
  const ended = { code: 0 as number | null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    ended.stderr += text;
  });
  return new Promise<typeof ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ ...ended, code }));
  });
}
