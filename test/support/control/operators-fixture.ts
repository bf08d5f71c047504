/** Fixture with a Control over TLS, a real identity provider, and browsers. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { startControl } from '../../../src/control/program/control-process.ts';
import { CONTROL_SETTINGS, type ControlSettings } from '../../../src/control/program/control-settings.ts';
import { settingValues } from '../../../src/process/settings/setting-sources.ts';
import {
  OIDC_CLIENT_ID,
  OIDC_CLIENT_SECRET,
  type OidcProvider,
  type OidcProviderOptions,
  startOidcProvider,
} from '../fakes/oidc-provider.ts';
import { Browser, type Page } from '../harness/browser.ts';
import { makeCertificates, type TestCertificates } from '../harness/certificates.ts';
import { freePort } from '../harness/free-port.ts';

/** Settings as parsed from a command line. @param flags each with its values */
function controlSettings(flags: { readonly [flag: string]: readonly string[] }): ControlSettings {
  return settingValues(CONTROL_SETTINGS, new Map(Object.entries(flags)));
}

export class OperatorFixture {
  readonly url: string;
  readonly provider: OidcProvider;
  readonly directory: string;
  /** Offset from the real time. */
  aheadMs = 0;
  /** Log lines of Control. */
  readonly log: string[] = [];
  readonly #certificates: TestCertificates;
  readonly #browsers: Browser[] = [];
  #stop: () => Promise<void> = async () => {};

  private constructor(
    url: string,
    provider: OidcProvider,
    directory: string,
    certificates: TestCertificates,
  ) {
    this.url = url;
    this.provider = provider;
    this.directory = directory;
    this.#certificates = certificates;
  }

  static async start(claimsIn: OidcProviderOptions['claimsIn'] = 'id_token'): Promise<OperatorFixture> {
    const certificates = await makeCertificates('localhost', 'spiffe://test/none', ['127.0.0.1']);
    const url = `https://127.0.0.1:${await freePort()}`;
    const redirectUris = [`${url}/auth/callback`];
    const provider = await startOidcProvider({ certificate: certificates.server, redirectUris, claimsIn });
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-operators-'));
    const fixture = new OperatorFixture(url, provider, directory, certificates);
    await fixture.#startControl();
    return fixture;
  }

  async #startControl(): Promise<void> {
    const secretFile = join(this.directory, 'client-secret');
    await writeFile(secretFile, `${OIDC_CLIENT_SECRET}\n`, { mode: 0o600 });
    const { ca, server } = this.#certificates;
    const settings = controlSettings({
      'data-dir': [this.directory],
      listen: [new URL(this.url).host],
      'admin-listen': ['127.0.0.1:0'],
      'public-url': [this.url],
      'tls-cert': [server.certPath],
      'tls-key': [server.keyPath],
      'oidc-issuer': [this.provider.issuer],
      'oidc-client-id': [OIDC_CLIENT_ID],
      'oidc-client-secret-file': [secretFile],
      'oidc-ca-file': [ca.certPath],
      'oidc-groups-claim': ['groups'],
      'address-rate': ['1000000'],
    });
    const logger = pino({ level: 'debug' }, { write: (line) => void this.log.push(line) });
    const control = await startControl(settings, { logger, nowMs: () => Date.now() + this.aheadMs });
    this.#stop = () => control.stop();
  }

  async close(): Promise<void> {
    await Promise.all(this.#browsers.map((browser) => browser.close()));
    await this.#stop();
    await this.provider.close();
    await this.#certificates.remove();
    await rm(this.directory, { recursive: true });
  }

  /** CA of all certificates here, as PEM. */
  get ca(): string {
    return this.#certificates.ca.cert;
  }

  browser(): Browser {
    const browser = new Browser(this.#certificates.ca.cert);
    this.#browsers.push(browser);
    return browser;
  }

  async bootstrapToken(): Promise<string> {
    return (await readFile(join(this.directory, 'bootstrap-token'), 'utf8')).trim();
  }

  /** Signs in at the provider like a person. @returns the answer of Control to the callback; redirects are not followed */
  async signIn(browser: Browser, name: string, query = ''): Promise<Page> {
    return browser.visit(await this.callbackUrl(browser, name, query));
  }

  /** Signs in up to the redirect back to Control, which it does not follow. */
  async callbackUrl(browser: Browser, name: string, query = ''): Promise<string> {
    const begun = await browser.visit(`${this.url}/auth/login${query}`);
    return this.throughProvider(browser, begun, name);
  }

  /** @param begun the redirect to the provider */
  async throughProvider(browser: Browser, begun: Page, name: string): Promise<string> {
    const isBack = (url: string) => url.startsWith(`${this.url}/`);
    let page = await browser.follow(begun, isBack);
    while (page.location === undefined) {
      const typed = page.body.includes('name="login"') ? { login: name, password: 'any' } : {};
      page = await browser.follow(await browser.submit(page, typed), isBack);
    }
    return page.location;
  }
}
