/** The examples of the SDKs for Node.js, Python and Java with other HTTP clients, against `proofgate dev`: what they send is what they sign. */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type DevSite, startDev } from '../../support/caller/dev-fixture.ts';
import {
  MISSING_JAVA,
  MISSING_PYTHON,
  PREPARE_TIMEOUT_MS,
  PYTHON_ENV,
  runJava,
} from '../../support/caller/sdk-drivers.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { workspaceFolder } from '../../support/harness/workspaces.ts';
import { writeUpstreamKey } from './node/upstream-key.ts';

const run = promisify(execFile);
const CLIENTS = checkoutPath('.cache', 'sdk-node', 'node_modules');
const itNode = existsSync(CLIENTS) ? it : it.skip;
const itPython = MISSING_PYTHON === undefined ? it : it.skip;

let dev: DevSite;
let folder = '';
beforeAll(async () => {
  dev = await startDev();
  folder = mkdtempSync(join(tmpdir(), 'pg-clients-'));
  mkdirSync(join(folder, 'node_modules', '@proofgate'), { recursive: true });
  symlinkSync(workspaceFolder('@proofgate/client'), join(folder, 'node_modules', '@proofgate', 'client'));
  for (const name of ['axios', 'got']) {
    if (existsSync(CLIENTS)) symlinkSync(join(CLIENTS, name), join(folder, 'node_modules', name));
  }
});
const ends: (() => void)[] = [];
afterAll(async () => {
  for (const end of ends) end();
  await dev.stop();
  rmSync(folder, { recursive: true });
});

const targets = () => dev.received.slice(-2).map(({ body, method, target }) => [method, target, body]);

itNode.each([
  ['with-axios.mjs', '{"item":"book","count":2}', '/v1/orders/17?q=%C3%BC+%2F%5B1%5D'],
  ['with-got.mjs', '{"item":"book","count":2}', '/v1/orders/17?q=%C3%BC%20[1]'],
])('Node.js: %s', async (example, body, target) => {
  cpSync(checkoutPath('sdk', 'node', 'examples', example), join(folder, example));
  const { stdout } = await run(process.execPath, [example, dev.keyFile, dev.origin], { cwd: folder });
  expect([stdout, targets()]).toEqual([
    '200 200\n',
    [
      ['POST', '/v1/orders', body],
      ['GET', target, ''],
    ],
  ]);
});

itNode('got signs each attempt anew', async () => {
  const jtis: unknown[] = [];
  const server = createServer((request, response) => {
    jtis.push(request.headers['x-proofgate-transcript']);
    response.writeHead(jtis.length < 2 ? 503 : 200, { 'retry-after': '0' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const text = readFileSync(checkoutPath('sdk', 'node', 'examples', 'with-got.mjs'), 'utf8');
  const [head = ''] = text.split('const created');
  const program = `${head}console.log((await client.get(\`\${baseUrl}/v1/a\`)).statusCode);`;
  writeFileSync(join(folder, 'retries.mjs'), program);
  const args = ['retries.mjs', writeUpstreamKey([origin]), origin];
  const { stdout } = await run(process.execPath, args, { cwd: folder });
  expect([stdout, jtis.length, new Set(jtis).size]).toEqual(['200\n', 2, 2]);
});

itPython('Python: with_aiohttp.py', async () => {
  const example = checkoutPath('sdk', 'python', 'examples', 'with_aiohttp.py');
  const { stdout } = await run('python3', [example, dev.keyFile, dev.origin], { env: PYTHON_ENV });
  expect([stdout, targets()]).toEqual([
    '200 200\n',
    [
      ['POST', '/v1/orders', '{"item": "book"}'],
      ['GET', '/v1/orders/17?q=%2f%c3%a9', ''],
    ],
  ]);
});

(MISSING_JAVA === undefined ? it : it.skip)(
  'Java: WithHttpClient, which offers HTTP/2 in plaintext',
  async () => {
    const { stdout } = await runJava(['WithHttpClient', dev.keyFile, dev.origin]);
    expect([stdout, targets()]).toEqual([
      '200 200\n',
      [
        ['POST', '/v1/orders', '{"item":"book"}'],
        ['GET', '/v1/orders/17', ''],
      ],
    ]);
  },
  PREPARE_TIMEOUT_MS,
);
