/** Tests sign-in and sign-out of the command line with a real Control, a real identity provider and a browser. */
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { signInCode } from '../../src/protocol/sign-in-code.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { type CliRun, expectCliError, expectNoStackTrace } from '../support/cli/run-cli.ts';
import { freePort } from '../support/harness/free-port.ts';
import { waitFor } from '../support/wait.ts';
import { LoginStage, readShown } from './ctl-login-fixture.ts';

let stage: LoginStage;
beforeAll(async () => {
  stage = await LoginStage.start();
});
afterAll(() => stage.close());
beforeEach(() => stage.newPerson());

async function keptToken(path = stage.sessionFile): Promise<string> {
  return (await readFile(path, 'utf8')).trim();
}

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}

/** Expects the error on stderr after the lines that every sign-in prints first. */
function expectLoginError(run: CliRun, code: string, exitCode: number): void {
  expectNoStackTrace(run);
  expect(readShown(run.stderr)).toBeDefined();
  expect(run.stderr).toMatch(new RegExp(`^error: ${code}: [^\\n]+\\n$`, 'm'));
  expect(run).toMatchObject({ exitCode, stdout: '' });
}

async function expectNothingKept(): Promise<void> {
  await expect(stat(stage.sessionFile)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(await readdir(dirname(stage.sessionFile))).toEqual([]);
}

describe('login', () => {
  it('keeps a session for its owner alone, and says who one is and until when', async () => {
    const run = stage.login();
    const shown = await stage.shown(run);
    const query = new URL(shown.url).searchParams;
    expect([...query.keys()].sort()).toEqual(['cli_challenge', 'cli_redirect', 'cli_state']);
    expect(shown.url.startsWith(`${stage.world.url}/auth/login?`)).toBe(true);
    expect(query.get('cli_redirect')).toMatch(/^http:\/\/127\.0\.0\.1:[0-9]+\//);
    expect(shown.code).toBe(signInCode(query.get('cli_challenge') ?? ''));

    const browser = stage.world.browser();
    const asked = await stage.askedPage(browser, shown);
    expect(asked.body).toContain(shown.code);
    const back = (await browser.submit(asked, { decision: 'allow' })).location ?? '';
    expect(back.startsWith(`${query.get('cli_redirect')}?`)).toBe(true);
    const page = await browser.visit(back);
    expect(page.status).toBe(200);
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');

    const ended = await run.ended;
    expectNoStackTrace(ended);
    const token = await keptToken();
    const session = await stage.call({ path: '/v1/session', token });
    expect(session).toMatchObject({ status: 200, body: { via: 'session', display_name: 'Ada' } });
    expect(ended).toMatchObject({
      exitCode: 0,
      stdout: `signed in as Ada (oidc:${stage.world.provider.issuer}|ada) until ${session.body.expires_at}\n`,
    });
    expect(await modeOf(stage.sessionFile)).toBe(0o600);
    expect(await modeOf(dirname(stage.sessionFile))).toBe(0o700);
    expect(await readdir(dirname(stage.sessionFile))).toHaveLength(1);
    const code = new URL(back).searchParams.get('code') ?? 'none';
    for (const output of [ended.stdout, ended.stderr, page.body, stage.world.log.join('')]) {
      expect(output).not.toContain(token);
      expect(output).not.toContain(code);
    }
  });

  it('answers in JSON, with the roles that one has', async () => {
    const token = await stage.world.bootstrapToken();
    const body = { principal: 'group:platform', role: 'viewer', scope: { kind: 'installation' } };
    const granted = await stage.call({ method: 'POST', path: '/v1/role-grants', token, body });
    expect(granted.status).toBe(201);
    const run = stage.login('--output', 'json');
    const notes = await waitFor('the notes', () => {
      const lines = run.stderr().split('\n').filter(Boolean);
      return lines.length >= 2 ? lines.map((line) => JSON.parse(line)) : undefined;
    });
    expect(notes.map(({ note }) => note)).toEqual(['sign_in_url', 'sign_in_code']);
    const shown = { url: / (https:\S+)$/.exec(notes[0].message)?.[1] ?? '', code: '' };
    const browser = stage.world.browser();
    await browser.visit(await stage.decided(browser, shown, 'allow'));
    const ended = await run.ended;
    expect(JSON.parse(ended.stdout)).toEqual({
      actor: `oidc:${stage.world.provider.issuer}|ada`,
      display_name: 'Ada',
      expires_at: expect.stringMatching(/Z$/),
      roles: [{ role: 'viewer', scope: { kind: 'installation' } }],
      session_file: stage.sessionFile,
    });
    const grant = `/v1/role-grants/${granted.body.role_grant_id}`;
    const { headers } = await stage.call({ path: grant, token });
    const etag = String(headers.etag);
    const removed = await stage.call({ method: 'DELETE', path: grant, token, headers: { 'if-match': etag } });
    expect(removed.status).toBe(204);
  });

  it('keeps the session where --session-file says; it is a token file too', async () => {
    const file = join(stage.configHome, 'mine', 'session');
    expect(await stage.signIn('--session-file', file)).toMatchObject({ exitCode: 0 });
    expect(await modeOf(file)).toBe(0o600);
    for (const flag of ['--session-file', '--token-file']) {
      expect(await stage.ctl('get', 'sites', flag, file)).toMatchObject({ exitCode: 0, stderr: '' });
    }
    expectCliError(await stage.ctl('get', 'sites'), 'not_signed_in', 2);
  });

  it('comes back to the port that was chosen', async () => {
    const port = await freePort();
    const run = stage.login('--redirect-port', String(port));
    const { searchParams } = new URL((await stage.shown(run)).url);
    expect(searchParams.get('cli_redirect')).toContain(`127.0.0.1:${port}/`);
    const browser = stage.world.browser();
    await browser.visit(await stage.decided(browser, await stage.shown(run), 'deny'));
    expectLoginError(await run.ended, 'sign_in_denied', 3);
  });

  it('puts another session in the place of the one before', async () => {
    await stage.signIn();
    const before = await keptToken();
    await stage.signIn();
    expect(await keptToken()).not.toBe(before);
    expect(await modeOf(stage.sessionFile)).toBe(0o600);
  });
});

describe('no session', () => {
  it('when the person says no', async () => {
    const run = stage.login();
    const browser = stage.world.browser();
    const back = await stage.decided(browser, await stage.shown(run), 'deny');
    expect((await browser.visit(back)).status).toBe(200);
    expectLoginError(await run.ended, 'sign_in_denied', 3);
    await expectNothingKept();
  });

  it('when no browser calls back', async () => {
    const run = await stage.login('--timeout', '1s').ended;
    expectLoginError(run, 'sign_in_timed_out', 4);
    await expectNothingKept();
    const { searchParams } = new URL(readShown(run.stderr)?.url ?? '');
    const gone = stage.world.browser().visit(searchParams.get('cli_redirect') ?? '');
    await expect(gone).rejects.toThrow();
  });

  it('for an answer with another state: it is refused, and the true one waited for', async () => {
    const run = stage.login();
    const browser = stage.world.browser();
    const back = new URL(await stage.decided(browser, await stage.shown(run), 'allow'));
    const forged = new URL(back);
    forged.searchParams.set('state', randomBytes(32).toString('base64url'));
    expect((await browser.visit(forged.href)).status).toBe(400);
    expect((await browser.visit(forged.href)).status).toBe(400);
    await browser.visit(back.href);
    const ended = await run.ended;
    expect(ended.exitCode).toBe(0);
    expect(ended.stderr.match(/another sign-in/g)).toHaveLength(1);
  });

  it('of a second answer: the first counts', async () => {
    const run = stage.login();
    const browser = stage.world.browser();
    const back = await stage.decided(browser, await stage.shown(run), 'allow');
    const second = back.replace(/code=[^&]*/, 'error=access_denied');
    expect(second).not.toBe(back);
    expect((await browser.visit(back)).status).toBe(200);
    // The code exchange of the first callback is in progress, or the listener is already closed.
    const answered = await browser.visit(second).catch(() => undefined);
    expect([undefined, 410]).toContain(answered?.status);
    expect(await run.ended).toMatchObject({ exitCode: 0 });
    expect(await keptToken()).toMatch(/^pgs_/);
  });

  it('for a code that was used before', async () => {
    const run = stage.login();
    const browser = stage.world.browser();
    const back = await stage.decided(browser, await stage.shown(run), 'allow');
    const body = { code: new URL(back).searchParams.get('code'), verifier: 'v'.repeat(43) };
    const spent = await stage.call({ method: 'POST', path: '/v1/session/exchange', body });
    expect(spent.status).toBe(401);
    await browser.visit(back);
    expectLoginError(await run.ended, 'sign_in_code_invalid', 3);
    await expectNothingKept();
  });

  it('for a code that belongs to another command line', async () => {
    const run = stage.login();
    const { url } = await stage.shown(run);
    const other = new URL(url);
    const challenge = createHash('sha256').update('another verifier').digest('base64url');
    other.searchParams.set('cli_challenge', challenge);
    const browser = stage.world.browser();
    const back = await stage.decided(browser, { url: other.href, code: signInCode(challenge) }, 'allow');
    await browser.visit(back);
    expectLoginError(await run.ended, 'sign_in_code_invalid', 3);
    await expectNothingKept();
  });

  it('is left at Control when it cannot be kept', async () => {
    const run = stage.login();
    const ended = await stage.auditCount('proofgate.control.session.end');
    const browser = stage.world.browser();
    const back = await stage.decided(browser, await stage.shown(run), 'allow');
    await mkdir(stage.sessionFile);
    await browser.visit(back);
    expectLoginError(await run.ended, 'file_is_directory', 2);
    expect(await stage.auditCount('proofgate.control.session.end')).toBe(ended + 1);
  });
});

describe('before anybody is asked', () => {
  it('a file that holds something else is not replaced', async () => {
    const file = join(stage.world.directory, 'bootstrap-token');
    const before = await readFile(file, 'utf8');
    expectCliError(await stage.ctl('login', '--session-file', file), 'session_file_invalid', 2);
    expectCliError(await stage.ctl('logout', '--session-file', file), 'session_file_invalid', 2);
    expect(await readFile(file, 'utf8')).toBe(before);
  });

  it('reports a port that another program has', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? String(address.port) : '';
    expectCliError(await stage.ctl('login', '--redirect-port', port), 'listen_failed', 2);
    await new Promise((resolve) => server.close(resolve));
  });

  it('a Control whose certificate is not trusted gets nothing', async () => {
    const args = ['ctl', 'login', '--no-browser', '--control-url', stage.world.url];
    expectCliError(await runInProcess(args, stage.env), 'control_unreachable', 5);
  });
});

describe('the browser', () => {
  const record = '#!/bin/sh\nprintf "%s\\n" "$#" "$@" > "$OPENED.part" && mv "$OPENED.part" "$OPENED"\n';

  async function openerIn(content: string): Promise<string> {
    const bin = join(stage.configHome, 'bin');
    await mkdir(bin, { recursive: true });
    for (const name of ['xdg-open', 'open']) {
      await writeFile(join(bin, name), content);
      await chmod(join(bin, name), 0o700);
    }
    return bin;
  }

  async function deniedRun(env: { readonly [name: string]: string }, opened?: string) {
    stage.env = { ...stage.env, ...env };
    const run = stage.startWithBrowser();
    const shown = await stage.shown(run);
    const openedUrls =
      opened === undefined ? '' : await waitFor('the browser to be opened', () => readFile(opened, 'utf8'));
    const browser = stage.world.browser();
    await browser.visit(await stage.decided(browser, shown, 'deny'));
    expectLoginError(await run.ended, 'sign_in_denied', 3);
    return { shown, openedUrls };
  }

  it('is given the page, as one argument and without a shell', async () => {
    const bin = await openerIn(record);
    const opened = join(stage.configHome, 'opened');
    const path = `${bin}:${process.env.PATH}`;
    const { shown, openedUrls } = await deniedRun({ PATH: path, DISPLAY: ':7', OPENED: opened }, opened);
    expect(openedUrls).toBe(`1\n${shown.url}\n`);
  });

  it('may fail: the page was shown', async () => {
    const bin = await openerIn('#!/bin/sh\nexit 3\n');
    await deniedRun({ PATH: `${bin}:${process.env.PATH}`, DISPLAY: ':7' });
  });

  it('may be missing', async () => {
    await deniedRun({ PATH: join(stage.configHome, 'nothing'), DISPLAY: ':7' });
  });
});

describe('other commands', () => {
  it('go with the session of their Control', async () => {
    expectCliError(await stage.ctl('get', 'sites'), 'not_signed_in', 2);
    await stage.signIn();
    expect(await stage.ctl('get', 'sites')).toMatchObject({ exitCode: 0, stdout: 'none\n', stderr: '' });
    const elsewhere = ['ctl', 'get', 'sites', '--control-url', 'https://127.0.0.1:9'];
    expectCliError(await runInProcess(elsewhere, stage.env), 'not_signed_in', 2);
  });

  it('go with the token file that is named, not with the session', async () => {
    await stage.signIn();
    expectCliError(await stage.ctl('get', 'environments', 'env_none'), 'not_found', 3);
    const file = join(stage.configHome, 'wrong-token');
    await writeFile(file, `pga_${'x'.repeat(43)}\n`, { mode: 0o600 });
    const refused = await stage.ctl('get', 'sites', '--token-file', file);
    expectCliError(refused, 'authentication_required', 3);
    expect(refused.stderr).toContain(file);
    expect(refused.stderr).not.toContain('xxxx');
  });

  it('say what to do when the session is over', async () => {
    await stage.signIn();
    stage.world.aheadMs = 9 * 3_600_000;
    const over = await stage.ctl('get', 'sites');
    expectCliError(over, 'authentication_required', 3);
    expect(over.stderr).toContain(`proofgate ctl login --control-url ${stage.world.url}`);
  });

  it('take no session that others may read', async () => {
    await stage.signIn();
    await chmod(stage.sessionFile, 0o640);
    expectCliError(await stage.ctl('get', 'sites'), 'file_permissions', 2);
    expectCliError(await stage.ctl('login'), 'file_permissions', 2);
  });
});

describe('logout', () => {
  it('ends the session and removes its file', async () => {
    await stage.signIn();
    const token = await keptToken();
    const run = await stage.ctl('logout');
    expect(run).toEqual({ exitCode: 0, stdout: `signed out of ${stage.world.url}\n`, stderr: '' });
    expect(await stage.call({ path: '/v1/session', token })).toMatchObject({ status: 401 });
    await expectNothingKept();
    expectCliError(await stage.ctl('logout'), 'not_signed_in', 2);
  });

  it('keeps the file while Control does not answer: the session is not ended', async () => {
    await stage.signIn();
    const token = await keptToken();
    const args = [
      'ctl',
      'logout',
      '--control-url',
      'https://127.0.0.1:9',
      '--session-file',
      stage.sessionFile,
    ];
    expectCliError(await runInProcess(args, stage.env), 'control_unreachable', 5);
    expect(await keptToken()).toBe(token);
    expect(await stage.call({ path: '/v1/session', token })).toMatchObject({ status: 200 });
  });

  it('takes a session that is over already', async () => {
    await stage.signIn();
    stage.world.aheadMs = 9 * 3_600_000;
    expect(await stage.ctl('logout')).toMatchObject({ exitCode: 0 });
    await expectNothingKept();
  });
});
