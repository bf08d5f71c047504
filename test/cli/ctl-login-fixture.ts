/** Runs `proofgate ctl login` against a Control with a real identity provider, and a browser that follows the URL it prints. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningCli, runInProcess, startInProcess } from '../support/cli/in-process.ts';
import type { CliRun } from '../support/cli/run-cli.ts';
import { type ApiAnswer, type ApiCall, callApi } from '../support/control/control-program.ts';
import { OperatorFixture } from '../support/control/operators-fixture.ts';
import type { Browser, Page } from '../support/harness/browser.ts';
import { waitFor } from '../support/wait.ts';

export interface ShownSignIn {
  /** URL to open for sign-in. */
  readonly url: string;
  /** Confirmation code, which the person compares with the page. */
  readonly code: string;
}

/** Parses what a run of `ctl login` printed on stderr. */
export function readShown(stderr: string): ShownSignIn | undefined {
  const url = /^Sign in with the browser: (\S+)$/m.exec(stderr)?.[1];
  const code = /shows this code: (\S+)$/m.exec(stderr)?.[1];
  return url === undefined || code === undefined ? undefined : { url, code };
}

export class LoginStage {
  readonly world: OperatorFixture;
  readonly #folder: string;
  #homes = 0;
  /** Environment of the current person. */
  env: { readonly [name: string]: string } = {};
  configHome = '';

  private constructor(world: OperatorFixture, folder: string) {
    this.world = world;
    this.#folder = folder;
  }

  static async start(): Promise<LoginStage> {
    const folder = await mkdtemp(join(tmpdir(), 'proofgate-login-'));
    const world = await OperatorFixture.start();
    world.provider.accounts.set('ada', { name: 'Ada', groups: ['platform'] });
    await writeFile(join(folder, 'ca.pem'), world.ca);
    return new LoginStage(world, folder);
  }

  async close(): Promise<void> {
    await this.world.close();
    await rm(this.#folder, { recursive: true });
  }

  /** Starts with a new person who has no session yet. */
  newPerson(): void {
    this.world.aheadMs = 0;
    this.configHome = join(this.#folder, `home-${this.#homes++}`, 'config');
    this.env = { XDG_CONFIG_HOME: this.configHome, PATH: process.env.PATH ?? '' };
  }

  get caFile(): string {
    return join(this.#folder, 'ca.pem');
  }

  get sessionFile(): string {
    const { host } = new URL(this.world.url);
    return join(this.configHome, 'proofgate', `session-${encodeURIComponent(host)}.token`);
  }

  args(...args: readonly string[]): readonly string[] {
    return ['ctl', ...args, '--control-url', this.world.url, '--control-ca-file', this.caFile];
  }

  ctl(...args: readonly string[]): Promise<CliRun> {
    return runInProcess(this.args(...args), this.env);
  }

  login(...flags: readonly string[]): RunningCli {
    return startInProcess(this.args('login', '--no-browser', ...flags), this.env);
  }

  /** Starts `ctl login`, which opens the browser that the environment names. */
  startWithBrowser(): RunningCli {
    return startInProcess(this.args('login'), this.env);
  }

  shown(run: RunningCli): Promise<ShownSignIn> {
    return waitFor('the page to sign in at', () => readShown(run.stderr()));
  }

  /** Signs in at the printed URL. @returns the page that asks for confirmation */
  async askedPage(browser: Browser, { url }: ShownSignIn, name = 'ada'): Promise<Page> {
    const begun = await browser.visit(url);
    return browser.visit(await this.world.throughProvider(browser, begun, name));
  }

  /** @returns the URL of the command line to which the browser is redirected */
  async decided(browser: Browser, shown: ShownSignIn, decision: 'allow' | 'deny'): Promise<string> {
    const page = await browser.submit(await this.askedPage(browser, shown), { decision });
    if (page.location === undefined) throw new Error(`no redirect: ${page.status}`);
    return page.location;
  }

  /** Runs the whole sign-in and allows it. */
  async signIn(...flags: readonly string[]): Promise<CliRun> {
    const run = this.login(...flags);
    const browser = this.world.browser();
    await browser.visit(await this.decided(browser, await this.shown(run), 'allow'));
    return run.ended;
  }

  call(call: ApiCall): Promise<ApiAnswer> {
    return callApi(this.world.url, { ...call, ca: this.world.ca });
  }

  /** Counts the audit events of a kind. */
  async auditCount(kind: string): Promise<number> {
    const token = await this.world.bootstrapToken();
    const { body } = await this.call({ path: `/v1/audit-events?kind=${kind}&limit=200`, token });
    return (body.items as readonly unknown[]).length;
  }
}
