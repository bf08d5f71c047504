/** Tests `proofgate ctl login` as a shipped process: a person starts it, answers in the browser, or cancels it. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LAUNCHER } from '../support/cli/compiled-cli.ts';
import { type Child, startChild } from '../support/harness/child.ts';
import { LoginStage, readShown, type ShownSignIn } from './ctl-login-fixture.ts';

let stage: LoginStage;
const running: Child[] = [];
beforeAll(async () => {
  stage = await LoginStage.start();
});
afterAll(() => stage.close());
beforeEach(() => stage.newPerson());
afterEach(() => Promise.all(running.splice(0).map((child) => child.stop())));

function startLogin(): Child {
  const args = [LAUNCHER, ...stage.args('login', '--no-browser')];
  const child = startChild({ command: process.execPath, args, env: stage.env });
  running.push(child);
  return child;
}

async function shownBy(child: Child): Promise<ShownSignIn> {
  await child.waitForLine(/shows this code/);
  return readShown(child.stderrLines.join('\n')) ?? { url: '', code: '' };
}

describe('a sign-in', () => {
  it('ends by itself once it is answered, and never had a secret in its arguments', async () => {
    const child = startLogin();
    const shown = await shownBy(child);
    const commandLine = await readFile(`/proc/${child.pid}/cmdline`, 'utf8');
    const browser = stage.world.browser();
    await browser.visit(await stage.decided(browser, shown, 'allow'));
    expect(await child.exited).toEqual({ code: 0, signal: null });
    const token = (await readFile(stage.sessionFile, 'utf8')).trim();
    expect(await stage.call({ path: '/v1/session', token })).toMatchObject({ status: 200 });
    for (const line of [commandLine, ...child.stdoutLines, ...child.stderrLines]) {
      expect(line).not.toContain(token);
      expect(line).not.toContain('pgs_');
    }
    expect(commandLine).toContain(stage.world.url);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('is given up at %s, and leaves nothing', async (signal) => {
    const child = startLogin();
    const { url } = await shownBy(child);
    child.signal(signal);
    expect(await child.exited).toEqual({ code: 4, signal: null });
    expect(child.stdoutLines).toEqual([]);
    expect(child.stderrLines.at(-1)).toMatch(/^error: sign_in_stopped: /);
    await expect(stat(stage.sessionFile)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await readdir(dirname(stage.sessionFile))).toEqual([]);
    const redirect = new URL(url).searchParams.get('cli_redirect') ?? '';
    await expect(stage.world.browser().visit(redirect)).rejects.toThrow();
  });
});
