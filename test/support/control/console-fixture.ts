/**
 * The console as its users have it: `proofgate control` as a process with a declared site, an identity provider, and the
 * system's Chromium. Every page of `newPage` is watched: a script error, a violation of the Content-Security-Policy or a failed request for a
 * file makes `stop` throw.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import type { ControlClient } from '../../../src/cli/ctl/client/control-client.ts';
import { isJsonObject, jsonObjects } from '../../../src/protocol/strict-json.ts';
import {
  OIDC_CLIENT_ID,
  OIDC_CLIENT_SECRET,
  type OidcProvider,
  startOidcProvider,
} from '../fakes/oidc-provider.ts';
import { makeCertificates, type TestCertificates } from '../harness/certificates.ts';
import { freePort } from '../harness/free-port.ts';
import { waitFor } from '../wait.ts';
import { ControlStage, type ControlStageOptions } from './control-fixture.ts';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/**
 * The browser of Debian's package `chromium-headless-shell`: Chromium without windows, which does not take priority
 * over other programs.
 */
const CHROMIUM = '/usr/bin/chromium-headless-shell';

interface Operator {
  readonly name: string;
  /** Role that is granted at the scope; undefined for none. */
  readonly role?: string;
  /** Default: the installation. */
  readonly scope?: string;
  /** The page that was asked for, below the console. */
  readonly path?: string;
  readonly browser?: BrowserContextOptions;
}

export class ConsoleStage {
  readonly control: ControlStage;
  /** Control's API with the bootstrap token. */
  readonly api: ControlClient;
  readonly browser: Browser;
  /** Faults that no page may have: script errors, refused content. */
  readonly faults: string[] = [];
  readonly #provider: OidcProvider;
  readonly #certificates: TestCertificates;
  readonly #directory: string;

  private constructor(
    control: ControlStage,
    api: ControlClient,
    browser: Browser,
    provider: OidcProvider,
    certificates: TestCertificates,
    directory: string,
  ) {
    this.control = control;
    this.api = api;
    this.browser = browser;
    this.#provider = provider;
    this.#certificates = certificates;
    this.#directory = directory;
  }

  static async start(options: ControlStageOptions = {}): Promise<ConsoleStage> {
    const port = await freePort();
    const directory = await mkdtemp(join(tmpdir(), 'pg-console-'));
    const certificates = await makeCertificates('localhost', 'spiffe://shop.example/x', ['127.0.0.1']);
    const provider = await startOidcProvider({
      certificate: certificates.server,
      redirectUris: [`http://127.0.0.1:${port}/auth/callback`],
      claimsIn: 'id_token',
    });
    const secretFile = join(directory, 'client-secret');
    await writeFile(secretFile, OIDC_CLIENT_SECRET, { mode: 0o600 });
    const control = await ControlStage.start({
      ...options,
      port,
      flags: [
        ...['--oidc-issuer', provider.issuer, '--oidc-client-id', OIDC_CLIENT_ID],
        ...['--oidc-client-secret-file', secretFile, '--oidc-ca-file', certificates.ca.certPath],
        ...(options.flags ?? []),
      ],
    });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    return new ConsoleStage(control, await control.api(), browser, provider, certificates, directory);
  }

  get url(): string {
    return `${this.control.controlUrl}/console`;
  }

  /** A page of a browser of its own, with its own cookies and no session. */
  async newPage(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.browser.newContext({
      ignoreHTTPSErrors: true,
      // Half transparent content has no contrast, so animations are disabled.
      reducedMotion: 'reduce',
      ...options,
    });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    page.on('pageerror', (error) => this.faults.push(`script error: ${error.message}`));
    page.on('response', (response) => {
      if (response.status() >= 400 && response.url().includes('/console/assets/')) {
        this.faults.push(`${response.status()} ${response.url()}`);
      }
    });
    page.on('console', (message) => {
      if (/Content Security Policy|requires 'Trusted/.test(message.text())) this.faults.push(message.text());
    });
    return page;
  }

  /** A page that is signed in with the bootstrap token, which has all permissions. */
  async adminPage(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.newPage(options);
    await page.goto(`${this.url}/`);
    await this.enterToken(page);
    return page;
  }

  /** Signs in on the page that asks for it. */
  async enterToken(page: Page): Promise<void> {
    await page.getByLabel('Bootstrap token').fill((await readFile(this.control.tokenFile, 'utf8')).trim());
    await page.getByRole('button', { name: 'Sign in with the token' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  }

  /** Signed in at the identity provider. */
  async operatorPage({ browser = {}, ...operator }: Operator): Promise<Page> {
    const page = await this.newPage(browser);
    await this.signIn(page, operator);
    return page;
  }

  /** Signs in at the identity provider on a page without a session. */
  async signIn(
    page: Page,
    { name, role, scope = 'installation', path = '/' }: Omit<Operator, 'browser'>,
  ): Promise<void> {
    this.#provider.accounts.set(name, { name });
    if (role !== undefined) {
      const principal = `oidc:${this.#provider.issuer}|${name}`;
      const [kind, id] = scope.split(':');
      const granted = { principal, role, scope: { kind, ...(id === undefined ? {} : { id }) } };
      await this.api.create('/v1/role-grants', { body: granted });
    }
    await page.goto(`${this.url}${path}`);
    await page.getByRole('link', { name: 'Sign in with your identity provider' }).click();
    await page.locator('input[name=login]').fill(name);
    await page.locator('input[name=password]').fill('any');
    await page.locator('button[type=submit]').click();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  }

  /** Reasons for each change of a kind of resource, newest first. */
  async reasonsOf(kind: string): Promise<readonly unknown[]> {
    const events = jsonObjects((await this.api.get('/v1/audit-events?limit=200')).body.items);
    const ofKind = events.filter(({ resource }) => isJsonObject(resource) && resource.kind === kind);
    return ofKind.map(({ reason }) => reason);
  }

  /** axe's findings about the open dialogue or the loaded page, by rule with the elements. */
  async axeViolations(page: Page): Promise<readonly string[]> {
    await page
      .getByRole('dialog')
      .or(page.getByRole('heading', { level: 1 }))
      .first()
      .waitFor();
    await waitFor('the page', async () => (await page.getByLabel('Loading').count()) === 0);
    // Injected by the debugger, which the page's Content-Security-Policy does not concern.
    if (!(await page.evaluate(`'axe' in globalThis`))) await page.evaluate(await readFile(axe, 'utf8'));
    const result: unknown = await page.evaluate(
      "axe.run(document.querySelector('[role=dialog]') ?? document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))",
    );
    return Array.isArray(result) ? result.map(String) : ['axe did not answer'];
  }

  /** @throws Error when a page had a fault */
  async stop(): Promise<void> {
    await this.browser.close();
    await this.api.close();
    await this.control.stop();
    await this.#provider.close();
    await this.#certificates.remove();
    await rm(this.#directory, { recursive: true });
    if (this.faults.length > 0) throw new Error(`pages had faults:\n${this.faults.join('\n')}`);
  }
}

/** Presses a button of the open dialogue. */
export function confirm(page: Page, button: string): Promise<void> {
  return page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click();
}

/** Presses an action of a row. On a telephone a row is a card, which shows it after More. */
export async function chooseIn(row: Locator, action: string): Promise<void> {
  await row.waitFor();
  const more = row.getByRole('button', { name: 'More' });
  if (await more.isVisible()) await more.click();
  await row.getByRole('button', { name: action, exact: true }).click();
}
