/**
 * Runs the examples of the SDKs, with their HTTP clients, through a real Envoy and verifier. Envoy is their HTTP proxy, or all
 * connections of a program go there, so that they send to the site's own origin.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  GO_ENV,
  javaProgram,
  MISSING_GO,
  MISSING_JAVA,
  MISSING_PYTHON,
  PREPARE_TIMEOUT_MS,
  PYTHON_ENV,
} from '../../support/caller/sdk-drivers.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { workspaceFolder } from '../../support/harness/workspaces.ts';
import { useEnvironment } from '../../support/site/environment.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { ORIGIN, writeBillingKey } from './billing-key.ts';

const environment = useEnvironment(['usual']);
const version = envoyVersions[envoyVersions.length - 1] ?? '';

/** A project with the Node SDK, undici, and the examples. */
const project = mkdtempSync(join(tmpdir(), 'pg-sdk-examples-'));
beforeAll(() => {
  mkdirSync(join(project, 'node_modules', '@proofgate'), { recursive: true });
  symlinkSync(workspaceFolder('@proofgate/client'), join(project, 'node_modules', '@proofgate', 'client'));
  symlinkSync(checkoutPath('node_modules', 'undici'), join(project, 'node_modules', 'undici'));
  cpSync(checkoutPath('sdk', 'node', 'examples'), project, { recursive: true });
}, PREPARE_TIMEOUT_MS);
afterAll(() => rmSync(project, { recursive: true }));

const python = (file: string) => ['python3', `sdk/python/examples/${file}.py`];
const node = (file: string) => [
  process.execPath,
  '--import',
  checkoutPath('test', 'caller', 'sdk', 'node', 'connect-to.mjs'),
  join(project, `${file}.mjs`),
];
/** Java does not read `http_proxy`. */
const java = (name: string) => [
  'java',
  '-Dhttp.proxyHost=HOST',
  '-Dhttp.proxyPort=PORT',
  '-Dhttp.nonProxyHosts=',
  name,
];
const EXAMPLES = [
  ['fetch', node('with-fetch'), '200 200', process.env, undefined],
  ['undici', node('with-undici'), '200 200', process.env, undefined],
  ['httpx', python('with_httpx'), '200 200', PYTHON_ENV, MISSING_PYTHON],
  ['httpx, async', python('with_httpx_async'), '200', PYTHON_ENV, MISSING_PYTHON],
  ['requests', python('with_requests'), '200', PYTHON_ENV, MISSING_PYTHON],
  ['urllib and sign()', python('with_urllib'), '200', PYTHON_ENV, MISSING_PYTHON],
  ['Go', ['go', 'run', '-C', 'sdk/go', './examples/orders'], '200 200', GO_ENV, MISSING_GO],
  ['java.net.http', java('WithHttpClient'), '200 200', process.env, MISSING_JAVA],
  ['OkHttp', java('WithOkHttp'), '200 200', process.env, MISSING_JAVA],
  ['RestClient', java('WithRestClient'), '200 200', process.env, MISSING_JAVA],
] as const;

describe.each(EXAMPLES)('the example with %s', (_name, [command = '', ...args], expected, env, missing) => {
  const itRuns = missing === undefined ? it : it.skip;

  itRuns(
    'is allowed',
    async () => {
      const gateway = await environment.gateway(version);
      const proxy = `http://${gateway.envoy.host}:${gateway.envoy.port}`;
      const flags = command === 'java' ? await javaProgram() : [];
      const given = args.map((arg) =>
        arg.replace('HOST', gateway.envoy.host).replace('PORT', String(gateway.envoy.port)),
      );
      const ended = await run(command, [...flags, ...given, keyFile(), ORIGIN], {
        ...env,
        http_proxy: proxy,
        NO_PROXY: '',
        PROOFGATE_TEST_CONNECT_TO: `${gateway.envoy.host}:${gateway.envoy.port}`,
      });
      expect(ended).toEqual({ code: 0, stdout: `${expected}\n`, stderr: '' });
    },
    PREPARE_TIMEOUT_MS,
  );
});

function keyFile(): string {
  const { readOrder, createOrder } = ROUTES;
  return writeBillingKey(environment.site, environment.site.directory, {
    keyId: 'dk_billing',
    routes: [readOrder, createOrder],
  });
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(command, args, { cwd: checkoutPath(), env });
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
