/** What the first page costs a browser: bytes, and time beside a page of the same libraries that shows one word. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { checkoutPath } from '../e2e/harness/checkout.ts';
import { ConsoleStage } from './console-fixture.ts';

const MAX_FIRST_LOAD_BYTES = 300 * 1024;
const MAX_RATIO = 3;
const ROUNDS = 9;

let stage: ConsoleStage;
let page: Page;
let emptyPage: { readonly url: string; close(): Promise<void> };

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
  emptyPage = await serveEmptyPage();
}, 90_000);
afterAll(async () => {
  await emptyPage.close();
  await stage.stop();
});

describe('the first page', () => {
  test('takes at most 300 KiB, compressed', async () => {
    const files = new Set<string>();
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (pathname.includes('/assets/')) files.add(pathname.split('/').at(-1) ?? '');
    });
    await page.goto(`${stage.url}/`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    const sizes = [...files].map(
      async (file) => (await stat(checkoutPath('dist', 'console', 'assets', `${file}.gz`))).size,
    );
    const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(files.size).toBeGreaterThan(2);
    expect(total).toBeLessThan(MAX_FIRST_LOAD_BYTES);
  });

  test('is there in at most three times what a page with React and one word takes', async () => {
    const context = page.context();
    const console: number[] = [];
    const empty: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      empty.push(await loadMs(context, emptyPage.url, 'p'));
      console.push(await loadMs(context, `${stage.url}/`, 'h1'));
    }
    expect(median(console) / median(empty)).toBeLessThan(MAX_RATIO);
  }, 120_000);
});

/** From the start of the navigation until the element is shown and the main thread is free; the cache is empty. */
async function loadMs(context: BrowserContext, url: string, selector: string): Promise<number> {
  const fresh = await context.newPage();
  const session = await context.newCDPSession(fresh);
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  await fresh.goto(url, { waitUntil: 'commit' });
  await fresh.locator(selector).first().waitFor();
  const ms = await fresh.evaluate(
    'new Promise((resolve) => requestIdleCallback(() => resolve(performance.now())))',
  );
  await fresh.close();
  return Number(ms);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Built and served like the console, without Control. */
async function serveEmptyPage(): Promise<typeof emptyPage> {
  const directory = await mkdtemp(join(tmpdir(), 'pg-empty-page-'));
  const react = checkoutPath('node_modules', 'react-dom', 'client.js');
  const jsx = checkoutPath('node_modules', 'react', 'jsx-runtime.js');
  await writeFile(
    join(directory, 'index.html'),
    '<!doctype html><div id="root"></div><script type="module" src="./main.js"></script>',
  );
  await writeFile(
    join(directory, 'main.js'),
    `import { createRoot } from '${react}';\nimport { jsx } from '${jsx}';\ncreateRoot(document.getElementById('root')).render(jsx('p', { children: 'ready' }));\n`,
  );
  const vite = checkoutPath('node_modules', 'vite', 'bin', 'vite.js');
  await promisify(execFile)(process.execPath, [
    vite,
    'build',
    directory,
    '--base',
    './',
    '--logLevel',
    'error',
  ]);
  const files = new Map<string, Buffer>();
  for (const file of await readdir(join(directory, 'dist'), { recursive: true, withFileTypes: true })) {
    if (file.isFile()) files.set(file.name, await readFile(join(file.parentPath, file.name)));
  }
  const server = await listen(files);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/index.html`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}

async function listen(files: ReadonlyMap<string, Buffer>): Promise<Server> {
  const server = createServer((request, response) => {
    const name = request.url?.split('/').at(-1) ?? '';
    const type = name.endsWith('.js') ? 'text/javascript' : 'text/html';
    response.writeHead(files.has(name) ? 200 : 404, { 'content-type': type }).end(files.get(name));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
