/**
 * Measures how long the console's first page takes, beside a page with React and one word: built alike, in the same browser,
 * the cache empty. Rounds alternate.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BrowserContext } from 'playwright-core';
import { ConsoleStage } from '../../test/support/control/console-fixture.ts';
import { checkoutPath } from '../../test/support/harness/checkout.ts';

export const PAGE_ROUNDS = 15;

/** Times to interactive in ms, by round. */
export interface FirstPageFigures {
  readonly console: readonly number[];
  readonly empty: readonly number[];
}

export async function measureFirstPage(): Promise<FirstPageFigures> {
  const stage = await ConsoleStage.start();
  const emptyPage = await serveEmptyPage();
  try {
    const context = (await stage.adminPage()).context();
    const console: number[] = [];
    const empty: number[] = [];
    for (let round = 0; round < PAGE_ROUNDS; round++) {
      empty.push(await interactiveMs(context, emptyPage.url));
      console.push(await interactiveMs(context, `${stage.url}/`));
    }
    return { console, empty };
  } finally {
    await emptyPage.close();
    await stage.stop();
  }
}

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

/** Built and served like the console, without Control. */
async function serveEmptyPage(): Promise<{ readonly url: string; close(): Promise<void> }> {
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
