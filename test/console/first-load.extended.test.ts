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
      empty.push(await interactiveMs(context, emptyPage.url));
      console.push(await interactiveMs(context, `${stage.url}/`));
    }
    expect(median(console) / median(empty)).toBeLessThan(MAX_RATIO);
  }, 120_000);
});

/**
 * Time to interactive, from the start of the navigation with an empty cache: the heading is there, content is painted, and the
 * last task of over 50 ms has ended. Source: web.dev "Time to Interactive", with a quiet window of one second.
 */
async function interactiveMs(context: BrowserContext, url: string): Promise<number> {
  const fresh = await context.newPage();
  const session = await context.newCDPSession(fresh);
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  await fresh.addInitScript(OBSERVE);
  const reported = fresh.waitForEvent('console', (message) => message.text().startsWith('interactive '));
  await fresh.goto(url, { waitUntil: 'commit' });
  const ms = (await reported).text().split(' ')[1];
  await fresh.close();
  return Number(ms);
}

const OBSERVE = `{
  const times = {};
  const report = () => {
    const ms = Math.max(times.heading, times.paint, times.longTask ?? 0);
    if (performance.now() > ms + 1000) console.debug('interactive ' + ms);
    else setTimeout(report, 200);
  };
  setTimeout(report, 200);
  new PerformanceObserver((list) => {
    for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') times.paint = startTime;
  }).observe({ type: 'paint', buffered: true });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) times.longTask = startTime + duration;
  }).observe({ type: 'longtask', buffered: true });
  new MutationObserver((_, observer) => {
    if (document.querySelector('h1') === null) return;
    times.heading = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });
}`;

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
    `import { createRoot } from '${react}';\nimport { jsx } from '${jsx}';\ncreateRoot(document.getElementById('root')).render(jsx('h1', { children: 'ready' }));\n`,
  );
  const vite = checkoutPath('node_modules', 'vite', 'bin', 'vite.js');
  const args = [vite, 'build', directory, '--base', './', '--logLevel', 'error'];
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_ENV: 'production' } });
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
