/** Attempts to steal or use an operator's session: by pages of other sites, by crafted addresses, and by the next user of the browser. */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { follow, foreignFaults, RAN } from './every-page.ts';

const SESSION = 'proofgate_session';

let stage: ConsoleStage;
let attacker: Server;
let keyId: string;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  ({ keyId } = await stage.control.enroll('billing'));
  attacker = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>evil</title>');
  });
  await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  attacker.closeAllConnections();
  attacker.close();
  await stage.stop();
});

/** A page of the attacker in the operator's browser. */
async function evilPage(host: string, operator: Page): Promise<Page> {
  const page = await operator.context().newPage();
  await page.goto(`http://${host}:${(attacker.address() as AddressInfo).port}/`);
  return page;
}

async function sessionCookie(page: Page): Promise<string | undefined> {
  const cookies = await page.context().cookies(stage.control.controlUrl);
  return cookies.find(({ name }) => name === SESSION)?.value;
}

/** What the attacks would change: how many environments there are, and grants of the client billing. */
async function counts(): Promise<readonly number[]> {
  const paths = ['/v1/environments', `/v1/sites/${SITE_ID}/clients/billing/grants`];
  return Promise.all(paths.map(async (path) => (await stage.api.list(path)).length));
}

/** The other port is another origin of the same site: cookies go with its requests. `localhost` is another site. */
describe.each(['127.0.0.1', 'localhost'])('a page of %s', (host) => {
  let operator: Page;
  let evil: Page;
  beforeAll(async () => {
    operator = await stage.adminPage();
    evil = await evilPage(host, operator);
  });
  afterAll(() => operator.context().close());

  /** @param script in the attacker's page, with the URL of Control in `control`; its value as text */
  async function attack(script: string): Promise<string> {
    const control = JSON.stringify(stage.control.controlUrl);
    const result: unknown = await evil.evaluate(
      `(async () => { const control = ${control}; ${script} })().then(String, (error) => 'failed: ' + error.name)`,
    );
    return String(result);
  }

  async function expectUntouched(): Promise<void> {
    expect(await counts()).toEqual([1, 1]);
    expect(await operator.evaluate(`fetch('/v1/session').then(({ status }) => status)`)).toBe(200);
  }

  const send = (init: string) =>
    `for (const path of ['/v1/environments', '/auth/logout', '/v1/session/bootstrap', '/auth/confirm'])
       await fetch(control + path, { method: 'POST', credentials: 'include', ${init} }).catch(() => {});`;

  test.each([
    ['no-cors, as text', send(`mode: 'no-cors', body: '{"name":"evil"}'`)],
    ['as JSON', send(`headers: { 'content-type': 'application/json' }, body: '{"name":"evil"}'`)],
    ['as a beacon', `navigator.sendBeacon(control + '/v1/environments', '{"name":"evil"}');`],
    [
      'as a deletion',
      `await fetch(control + '/v1/sites/${SITE_ID}/clients/billing/grants/orders', { method: 'DELETE', credentials: 'include' }).catch(() => {});`,
    ],
  ])('changes nothing: %s', async (_, script) => {
    await attack(script);
    await expectUntouched();
  });

  test.each([
    ['/v1/environments', 'text/plain'],
    ['/auth/logout', 'application/x-www-form-urlencoded'],
    ['/auth/logout', 'text/plain'],
    ['/v1/session/bootstrap', 'text/plain'],
  ])('changes nothing with a form to %s, %s', async (path, type) => {
    const before = await sessionCookie(operator);
    const form = await evilPage(host, operator);
    const answer = form.waitForResponse(`${stage.control.controlUrl}${path}`);
    await form.evaluate(
      `(() => { const form = document.createElement('form'); form.method = 'post'; form.enctype = ${JSON.stringify(type)};
        form.action = ${JSON.stringify(`${stage.control.controlUrl}${path}`)};
        const field = document.createElement('input'); field.name = '{"name":"evil","x":"'; field.value = '"}';
        if (!form.action.endsWith('logout')) form.append(field);
        document.body.append(form); form.submit(); })()`,
    );
    await answer;
    await form.close();
    expect(await sessionCookie(operator)).toBe(before);
    await expectUntouched();
  });

  test('reads nothing', async () => {
    const read = (init: string) =>
      `return await fetch(control + '/v1/session', { ${init} }).then((answer) => answer.text());`;
    expect(await attack(read(`credentials: 'include'`))).toBe('failed: TypeError');
    expect(await attack(read(`credentials: 'include', mode: 'no-cors'`))).toBe('failed: TypeError');
    for (const event of ['open', 'message', 'change']) {
      const followed = await attack(
        `return await new Promise((resolve) => {
          const source = new EventSource(control + '/v1/changes', { withCredentials: true });
          source.addEventListener('${event}', () => resolve('heard')); source.onerror = () => { source.close(); resolve('error'); };
        });`,
      );
      expect(followed).toBe('error');
    }
    const script = await attack(
      `return await new Promise((resolve) => {
        const script = document.createElement('script'); script.src = control + '/v1/session';
        script.onload = () => resolve('loaded'); script.onerror = () => resolve('error'); document.body.append(script);
      });`,
    );
    expect(script).toBe('error');
  });

  test('frames nothing of Control', async () => {
    for (const path of ['/console/', '/auth/callback', '/v1/sign-in-methods']) {
      await attack(
        `await new Promise((resolve) => { const frame = document.createElement('iframe'); frame.src = control + '${path}';
          frame.onload = resolve; document.body.replaceChildren(frame); });`,
      );
      const shown = await Promise.all(
        evil
          .frames()
          .slice(1)
          .map((frame) => frame.evaluate('location.href').catch(() => 'gone')),
      );
      // The frame before may still be going.
      expect(shown.filter((url) => url !== 'gone')).toEqual(['chrome-error://chromewebdata/']);
    }
  });

  test('keeps no hold of a window of the console that it opens', async () => {
    const opening = operator.context().waitForEvent('page');
    await attack(`globalThis.opened = window.open(control + '/console/');`);
    const opened = await opening;
    await opened.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(await opened.evaluate('window.opener')).toBeNull();
    expect(await attack('return opened.closed;')).toBe('true');
    await opened.close();
  });

  test('reaches a page of the console by a link, but nothing of the API', async () => {
    const linked = await evilPage(host, operator);
    await linked.evaluate(`location.href = ${JSON.stringify(`${stage.control.controlUrl}/v1/session`)}`);
    await linked.getByText('origin_forbidden').waitFor();
    await linked.close();
  });
});

describe('the bootstrap token', () => {
  test.each(['/', '/console/', '/v1/sign-in-methods'])(
    'is asked for by no other host name: %s',
    async (path) => {
      const { port } = new URL(stage.control.controlUrl);
      const token = (await readFile(stage.control.tokenFile, 'utf8')).trim();
      // Chromium resolves it to loopback, as a name that an attacker binds again; the page is then the attacker's.
      const page = await stage.newPage({ bypassCSP: true });
      await page.goto(`http://evil.localhost:${port}${path}`);
      expect(await page.getByLabel('Bootstrap token').count()).toBe(0);
      const body = JSON.stringify({ token });
      const answer: unknown = await page.evaluate(
        `fetch('/v1/session/bootstrap', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(body)} }).then((answer) => answer.text())`,
      );
      expect(answer).toContain('bootstrap_sign_in_local');
      expect(
        await page.evaluate(`fetch('/v1/sign-in-methods').then((answer) => answer.json())`),
      ).toMatchObject({
        bootstrap_token: false,
      });
      await page.context().close();
    },
  );
});

describe('signing in', () => {
  let page: Page;
  beforeAll(async () => {
    page = await stage.newPage();
  });
  afterAll(() => page.context().close());

  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    '/console/../../evil',
    '/%2e%2e/evil',
    'console/',
    ' //evil.example',
    '/\r\nlocation: https://evil.example',
  ])('leads nowhere else: return_to=%j', async (path) => {
    const query = new URLSearchParams({ return_to: path });
    const response = await page.goto(`${stage.control.controlUrl}/auth/login?${query}`);
    expect(response?.status()).toBe(400);
    expect(new URL(page.url()).origin).toBe(stage.control.controlUrl);
  });

  test('leads back to an address that browsers and Control write in different ways', async () => {
    const path = `/sites/${SITE_ID}/keys?search=a\\b/../c//d&sort=Key`;
    const page = await stage.operatorPage({ name: 'path', role: 'viewer', path });
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    expect(await page.getByLabel('Search').inputValue()).toBe('a\\b/../c//d');
    await page.context().close();
  });

  test('takes no session that was there before, and leaves no secret in any request but its own', async () => {
    const planted = `pgs_${'A'.repeat(43)}`;
    const page = await stage.newPage();
    const referrers: (string | null)[] = [];
    page.on('request', async (request) => {
      if (!request.url().startsWith(stage.control.controlUrl))
        referrers.push(await request.headerValue('referer'));
    });
    await page.context().addCookies([{ name: SESSION, value: planted, url: stage.control.controlUrl }]);
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys?subject=secret`);
    await stage.enterToken(page);
    const first = await sessionCookie(page);
    expect(first).not.toBe(planted);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Bootstrap token').waitFor();
    expect(await sessionCookie(page)).toBeUndefined();
    await page.getByRole('link', { name: 'Sign in with your identity provider' }).click();
    await page.locator('input[name=login]').waitFor();
    expect(referrers).not.toEqual([]);
    expect(referrers.filter((referrer) => referrer?.startsWith(stage.control.controlUrl))).toEqual([]);
    // The session before is over for who has its cookie.
    await page.context().addCookies([{ name: SESSION, value: String(first), url: stage.control.controlUrl }]);
    await page.goto(`${stage.url}/`);
    await page.getByLabel('Bootstrap token').waitFor();
    await page.context().close();
  });
});

describe('the next user of the browser', () => {
  test('finds nothing by the back button', async () => {
    const page = await stage.adminPage();
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys`);
    await page.getByText(keyId).waitFor();
    await page.goto('about:blank');
    const other = await page.context().newPage();
    await other.goto(`${stage.url}/`);
    await other.getByRole('button', { name: 'Sign out' }).click();
    await other.getByLabel('Bootstrap token').waitFor();
    await page.goBack();
    await page.getByLabel('Bootstrap token').waitFor();
    expect(await page.content()).not.toContain(keyId);
    await page.context().close();
  });

  test('finds nothing in storage', async () => {
    const page = await stage.adminPage();
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys?subject=billing`);
    await page.getByRole('link', { name: keyId }).click();
    await page.getByText('Key', { exact: true }).waitFor();
    await page.getByRole('button', { name: /^Colours/ }).click();
    const stored = await page.evaluate(
      `Promise.all([indexedDB.databases(), caches.keys(), navigator.serviceWorker.getRegistrations(), Object.keys(sessionStorage), Object.keys(localStorage), document.cookie])`,
    );
    expect(stored).toEqual([[], [], [], [], ['mantine-color-scheme-value'], '']);
    const [cookie] = (await page.context().cookies(stage.control.controlUrl)).filter(
      ({ name }) => name === SESSION,
    );
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/' });
    await page.context().close();
  });
});

describe('a crafted address', () => {
  const SCRIPT = `<img src=x onerror=${RAN}=1>"><script>${RAN}=1</script>{{constructor.constructor('${RAN}=1')()}}`;
  const encoded = encodeURIComponent(SCRIPT);
  const site = `/sites/${SITE_ID}`;
  const parameters = [
    'search',
    'sort',
    'order',
    'cursor',
    'view',
    'state',
    'status',
    'kind',
    'client',
    'subject',
  ];
  const more = ['fingerprint', 'route', 'key', 'site', 'resource'];
  const texts = [SCRIPT, `javascript:${RAN}=1`, '__proto__', 'constructor', '\u202ea', 'x'.repeat(800)];
  const queries = [
    ...texts.map((text) =>
      new URLSearchParams(
        [...parameters, ...more].map((name) => [name, text] as [string, string]),
      ).toString(),
    ),
    '__proto__=x&constructor=x&prototype=x&toString=x&hasOwnProperty=x&valueOf=x&then=x',
    '__proto__[polluted]=1&constructor[prototype][polluted]=1&__proto__.polluted=1',
    '%=%&&&=&%E0%A4%A=1&search=%00',
  ];
  const paths = [
    '/',
    '/audit',
    '/access',
    ...['keys', 'approvals', 'blocked', 'clients', 'sources'].map((p) => `${site}/${p}`),
  ];
  const unknown = [
    `/${encoded}`,
    `/${SCRIPT}`,
    `/sites/${encoded}/keys`,
    `/sites/__proto__/keys`,
    `/sites/%252e%252e/keys`,
    `/sites/..%2f..%2fhealthz/keys`,
    ...['keys', 'policies', 'sources', 'approvals'].map((p) => `${site}/${p}/${encoded}`),
    `//evil.example/`,
    `/\\evil.example`,
    `/%2f%2fevil.example`,
    `/#javascript:${RAN}=1`,
    `/%`,
    `/%E0%A4%A`,
  ];

  let page: Page;
  beforeAll(async () => {
    page = await stage.adminPage();
  });
  afterAll(() => page.context().close());

  /** The first address is loaded, later ones are opened in the console that it loaded. */
  async function faultsAt(address: string): Promise<readonly string[]> {
    if (await page.evaluate(`'__TSR_ROUTER__' in globalThis`)) {
      await follow(page, `${stage.url}${address}`);
      return faultsOfOpen(address);
    }
    return faultsOfLoaded(address);
  }

  async function faultsOfLoaded(address: string): Promise<readonly string[]> {
    const answer = await page.goto(`${stage.url}${address}`);
    // Control itself refuses what is no address.
    if (answer?.status() === 400) return foreignFaults(page, address);
    return faultsOfOpen(address);
  }

  async function faultsOfOpen(address: string): Promise<readonly string[]> {
    await page.getByRole('heading', { level: 1 }).or(page.getByRole('alert')).first().waitFor();
    await page.locator('[aria-label=Loading]').first().waitFor({ state: 'detached' });
    const faults = [...(await foreignFaults(page, address))];
    if (new URL(page.url()).origin !== stage.control.controlUrl)
      faults.push(`${address} leads to ${page.url()}`);
    if (await page.evaluate(`'polluted' in {} || Object.keys(Object.prototype).length > 0`))
      faults.push(`${address} pollutes`);
    if (await page.getByText('The page failed').count()) faults.push(`${address} fails`);
    return faults;
  }

  test.each(queries)('runs nothing by its query: %.60s', async (query) => {
    const [first = '', ...others] = paths;
    const faults = [...(await faultsOfLoaded(`${first}?${query}`))];
    for (const path of others) faults.push(...(await faultsAt(`${path}?${query}`)));
    expect(faults).toEqual([]);
  });

  test.each(unknown)('runs nothing by its path: %.60s', async (path) => {
    expect(await faultsOfLoaded(path)).toEqual([]);
  });
});

test('no text becomes markup or script by any means', async () => {
  // Its violations are meant: this page is not watched.
  const context = await stage.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${stage.url}/`);
  await page.getByLabel('Bootstrap token').waitFor();
  const attempts = {
    markup: `document.createElement('div').innerHTML = '<b>x</b>'`,
    document: `document.write('<b>x</b>')`,
    parser: `new DOMParser().parseFromString('<b>x</b>', 'text/html')`,
    source: `document.createElement('script').src = '/console/assets/x.js'`,
    script: `document.createElement('script').text = '${RAN} = 1'`,
    policy: `trustedTypes.createPolicy('other', {})`,
  };
  for (const [name, code] of Object.entries(attempts)) {
    const outcome = await page.evaluate(
      `(() => { try { ${code}; return 'done'; } catch { return 'refused'; } })()`,
    );
    expect([name, outcome]).toEqual([name, 'refused']);
  }
  expect(await page.evaluate(`'${RAN}' in globalThis`)).toBe(false);
  await context.close();
});
