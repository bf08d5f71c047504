/**
 * Programs that know nothing of Proofgate, through the signer's egress proxy or an egress Envoy, and one that asks the signing
 * API; then through a real Envoy and the verifier to the API.
 */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { type RunningSigner, startSigner } from '../../../src/caller/signer/program/signer-process.ts';
import { SIGNER_SETTINGS } from '../../../src/caller/signer/program/signer-settings.ts';
import { settingValues } from '../../../src/process/settings/settings.ts';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { ORIGIN, SECURE_ORIGIN, writeBillingKey } from '../../support/caller/egress-fixture.ts';
import {
  GO_ENV,
  MISSING_GO,
  MISSING_PYTHON,
  PREPARE_TIMEOUT_MS,
  PYTHON_ENV,
} from '../../support/caller/sdk-drivers.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import type { RunningEnvoy } from '../../support/harness/envoy.ts';
import { runProofgate } from '../../support/harness/proofgate-command.ts';
import { tlsEdits } from '../../support/harness/tls-edits.ts';
import { byLane } from '../../support/lane.ts';
import { useEnvironment } from '../../support/site/environment.ts';
import type { Gateway } from '../../support/site/gateway.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { type SignerProcess, startEgressEnvoy, startEgressParties } from './egress-gateway.ts';

const run = promisify(execFile);
const environment = useEnvironment(['usual']);
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/a');
});
afterAll(() => certificates.remove());

const PYTHON = `
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], data=sys.argv[2].encode() if len(sys.argv) > 2 else None)
with urllib.request.urlopen(request) as response:
    print(response.status)
`;

/** Arguments: socket of the signer, URL to sign, host and port of the gateway. */
const SIGNING_API_CLIENT = `
import http.client, json, socket, sys, urllib.parse
api_path, url, host, port = sys.argv[1:]
api = http.client.HTTPConnection('localhost')
api.sock = socket.socket(socket.AF_UNIX)
api.sock.connect(api_path)
api.request('POST', '/v1/proofs', json.dumps({'method': 'GET', 'url': url}))
headers = json.load(api.getresponse())['headers']
gateway, parts = http.client.HTTPConnection(host, int(port)), urllib.parse.urlsplit(url)
gateway.request('GET', parts.path, headers={**headers, 'Host': parts.netloc})
print(gateway.getresponse().status)
`;

interface Program {
  readonly name: string;
  /** Undefined: it can run here. Otherwise why not. */
  readonly missing?: string | undefined;
  /** Whether it sends to the proxy of the variable `http_proxy`. */
  readonly takesProxy: boolean;
  /** Prints the status. */
  readonly send: (url: string, body?: string, proxy?: string) => Promise<string>;
}

const environmentOf = (proxy: string | undefined) => ({
  ...process.env,
  ...(proxy === undefined ? {} : { http_proxy: proxy }),
});

const GO_CLIENT: Program = {
  name: 'net/http of Go',
  missing: MISSING_GO,
  takesProxy: true,
  send: async (url, body, proxy) => {
    const file = checkoutPath('test', 'e2e', 'signer', 'client.go');
    const args = ['run', file, url, ...(body === undefined ? [] : [body])];
    return (await run('go', args, { env: { ...environmentOf(proxy), ...GO_ENV } })).stdout.trim();
  },
};

/** With its default settings it offers h2c with each request. */
const JAVA_CLIENT: Program = {
  name: 'HttpClient of Java',
  missing: spawnSync('java', ['--version']).status === 0 ? undefined : 'java is not installed',
  takesProxy: false,
  send: async (url, body) => {
    const file = checkoutPath('test', 'e2e', 'signer', 'Client.java');
    return (await run('java', [file, url, ...(body === undefined ? [] : [body])])).stdout.trim();
  },
};

/** Debian's libokhttp-java. */
const OKHTTP_JARS = ['okhttp', 'okio'].map((name) => `/usr/share/java/${name}.jar`);

const OKHTTP_CLIENT: Program = {
  name: 'OkHttp of Java',
  missing: JAVA_CLIENT.missing ?? (OKHTTP_JARS.every(existsSync) ? undefined : 'OkHttp is not installed'),
  takesProxy: false,
  send: async (url, body) => {
    const file = checkoutPath('test', 'e2e', 'signer', 'OkHttp.java');
    const args = ['-cp', OKHTTP_JARS.join(':'), file, url, ...(body === undefined ? [] : [body])];
    return (await run('java', args)).stdout.trim();
  },
};

const NODE_CLIENTS = checkoutPath('.cache', 'sdk-node');

/** @param code what prints the status, given `url` and `body`, which may be undefined */
function nodeClient(name: string, code: string): Program {
  return {
    name: `${name} of Node.js`,
    missing: existsSync(NODE_CLIENTS) ? undefined : 'the clients of Node.js are not installed',
    takesProxy: false,
    send: async (url, body) => {
      const program = `import ${name} from '${name}'; const [url, body] = process.argv.slice(1); ${code}`;
      const args = ['--input-type=module', '-e', program, url, ...(body === undefined ? [] : [body])];
      return (await run(process.execPath, args, { cwd: NODE_CLIENTS })).stdout.trim();
    },
  };
}

/** @param code what prints the status, given `method`, `url` and `body`, which may be None */
function pythonClient(name: string, code: string): Program {
  return {
    name: `${name} of Python`,
    missing: MISSING_PYTHON,
    takesProxy: false,
    send: async (url, body) => {
      const program = `import ${name}, sys
url, body = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
method = 'GET' if body is None else 'POST'
${code}`;
      const args = ['-c', program, url, ...(body === undefined ? [] : [body])];
      return (await run('python3', args, { env: PYTHON_ENV })).stdout.trim();
    },
  };
}

const LIBRARIES: readonly Program[] = [
  nodeClient(
    'axios',
    "console.log((await axios({ url, method: body ? 'POST' : 'GET', data: body })).status);",
  ),
  nodeClient('got', 'console.log((await got(url, body ? { method: "POST", body } : {})).statusCode);'),
  pythonClient('requests', 'print(requests.request(method, url, data=body).status_code)'),
  pythonClient('httpx', 'print(httpx.request(method, url, content=body).status_code)'),
  pythonClient(
    'aiohttp',
    `import asyncio
async def main():
    async with aiohttp.request(method, url, data=body) as response:
        print(response.status)
asyncio.run(main())`,
  ),
];

const PROGRAMS: readonly Program[] = [
  {
    name: 'curl',
    takesProxy: true,
    send: async (url, body, proxy) => {
      const data = body === undefined ? [] : ['--data-binary', body];
      const args = ['-s', '-o', '/dev/null', '-w', '%{http_code}', ...data, url];
      return (await run('curl', args, { env: environmentOf(proxy) })).stdout;
    },
  },
  {
    name: 'curl over HTTP/2',
    takesProxy: false,
    send: async (url, body) => {
      const data = body === undefined ? [] : ['--data-binary', body];
      const flags = ['-s', '--http2-prior-knowledge', '-o', '/dev/null', '-w', '%{http_code}'];
      return (await run('curl', [...flags, ...data, url])).stdout;
    },
  },
  {
    name: 'curl that offers h2c',
    takesProxy: false,
    send: async (url, body) => {
      const data = body === undefined ? [] : ['--data-binary', body];
      return (await run('curl', ['-s', '--http2', '-o', '/dev/null', '-w', '%{http_code}', ...data, url]))
        .stdout;
    },
  },
  {
    name: 'urllib of Python',
    takesProxy: true,
    send: async (url, body, proxy) => {
      const args = ['-c', PYTHON, url, ...(body === undefined ? [] : [body])];
      return (await run('python3', args, { env: environmentOf(proxy) })).stdout.trim();
    },
  },
  {
    name: 'fetch of Node.js',
    takesProxy: false,
    send: async (url, body) =>
      String((await fetch(url, body === undefined ? {} : { method: 'POST', body })).status),
  },
  ...byLane({ fast: [], extended: [GO_CLIENT, JAVA_CLIENT, OKHTTP_CLIENT, ...LIBRARIES] }),
];

const ORDER = { path: '/v1/orders/4711?full=1', body: 'one order' };

/** Sends a GET and a POST. @param base URL without a path */
async function expectToArrive(
  gateway: Gateway,
  { send }: Program,
  { base, proxy }: { readonly base: string; readonly proxy?: string },
): Promise<void> {
  gateway.upstream.clear();
  expect(await send(`${base}${ORDER.path}`, undefined, proxy)).toBe('200');
  expect(await send(`${base}/v1/orders`, ORDER.body, proxy)).toBe('200');
  const arrived = gateway.upstream.requests;
  expect(arrived.map((one) => `${one.method} ${one.url} ${one.body}`)).toEqual([
    `GET ${ORDER.path} `,
    `POST /v1/orders ${ORDER.body}`,
  ]);
  for (const { headers } of arrived)
    expect(headers).toContainEqual(['x-proofgate-subject', 'client:billing']);
}

const combinations = LANE_ENVOYS.flatMap((version) => [
  { version, origin: ORIGIN },
  // Envoy selects HTTP/2.
  { version, origin: SECURE_ORIGIN },
]);

describe.each(combinations)('Envoy $version as $origin', ({ version, origin }) => {
  let folder = '';
  let gateway: Gateway;
  let signer: RunningSigner;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pg-signer-'));
    const tls = { ca: certificates.ca.cert, servername: AUTHORITY };
    const variant = { name: 'tls', tls, edits: tlsEdits(certificates) };
    gateway = await environment.gateway(version, 'usual', origin === ORIGIN ? undefined : variant);
    const key = join(folder, 'key.pem');
    await writeBillingKey(environment.site, key, true);
    signer = await startSigner(
      {
        ...settingValues(SIGNER_SETTINGS, new Map()),
        ...{ key, listen: '127.0.0.1:0', upstream: origin, adminListen: '127.0.0.1:0' },
        apiListen: `unix:${join(folder, 'api.sock')}`,
        upstreamCaFile: certificates.ca.certPath,
        ...{ connectTo: `${gateway.envoy.host}:${gateway.envoy.port}`, drainTimeoutMs: 1_000 },
      },
      {},
      pino({ level: 'silent' }),
    );
  });
  afterAll(async () => {
    await signer.stop();
    await rm(folder, { recursive: true });
  });

  const token = 'Bearer of-the-application';
  const arrivedTokens = () => {
    const [{ headers = [] } = {}, ...more] = gateway.upstream.requests;
    const values = (name: string) => headerValues(headers, name);
    return { tokens: values('authorization'), passports: values('x-proofgate-passport'), more: more.length };
  };

  it("a program's own Authorization arrives, signed", async () => {
    gateway.upstream.clear();
    const url = `http://${signer.addresses.listen}/v1/bearer`;
    expect((await fetch(url, { headers: { authorization: token } })).status).toBe(200);
    expect(arrivedTokens()).toEqual({ tokens: [token], passports: [], more: 0 });
  });

  it('the Authorization of a request that the command line signs arrives', async () => {
    gateway.upstream.clear();
    const { exitCode, stderr } = await runProofgate([
      ...['request', 'GET', `${origin}/v1/bearer`, '--header', `Authorization: ${token}`],
      ...['--key', join(folder, 'key.pem'), '--ca-file', certificates.ca.certPath],
      ...['--connect-to', `${gateway.envoy.host}:${gateway.envoy.port}`],
    ]);
    expect([exitCode, stderr.includes('of-the-application')]).toEqual([0, false]);
    expect(arrivedTokens()).toEqual({ tokens: [token], passports: [], more: 0 });
  });

  // The client speaks plain HTTP to the gateway.
  const inPlainHttp = origin === ORIGIN ? it : it.skip;
  inPlainHttp('what a program sends with headers from the signing API arrives', async () => {
    const { host, port } = gateway.envoy;
    const args = [join(folder, 'api.sock'), `${ORIGIN}/v1/orders/4711`, host, String(port)];
    expect((await run('python3', ['-c', SIGNING_API_CLIENT, ...args])).stdout).toBe('200\n');
  });

  describe.each(PROGRAMS)('$name', (program) => {
    const itRuns = program.missing === undefined ? it : it.skip;
    itRuns(
      'arrives signed, with and without a body',
      async () => {
        const http2Requests = () => gateway.envoy.stat('http.ingress.downstream_rq_http2_total');
        const before = await http2Requests();
        await expectToArrive(gateway, program, { base: `http://${signer.addresses.listen}` });
        expect((await http2Requests()) - before).toBe(origin === SECURE_ORIGIN ? 2 : 0);
      },
      PREPARE_TIMEOUT_MS,
    );
  });
});

describe.each(LANE_ENVOYS)('behind an egress Envoy %s', (version) => {
  let gateway: Gateway;
  let signer: SignerProcess;
  let egress: RunningEnvoy;
  beforeAll(async () => {
    ({ gateway, signer } = await startEgressParties(environment, version, certificates));
    egress = await startEgressEnvoy(version, { signer, gateway, certificates });
  });
  afterAll(async () => {
    await egress.stop();
    await signer.stop();
  });

  it.each(PROGRAMS.filter(({ missing, takesProxy }) => takesProxy && missing === undefined))(
    '$name arrives signed, with and without a body',
    async (program) => {
      const proxy = `http://${egress.host}:${egress.port}`;
      await expectToArrive(gateway, program, { base: ORIGIN, proxy });
    },
    PREPARE_TIMEOUT_MS,
  );
});
