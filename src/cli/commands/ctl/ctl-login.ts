/** `proofgate ctl login|logout|whoami`: begins, ends and shows the session that the other commands use. */
import { spawn } from 'node:child_process';
import type { ControlUrl } from '../../../caller/enroll/control-url.ts';
import { oneLine } from '../../../process/program/errors.ts';
import type { Environment } from '../../../process/program/output.ts';
import {
  duration,
  integer,
  type SettingValues,
  toggle,
  withDefault,
} from '../../../process/settings/settings.ts';
import { MAX_PORT } from '../../../protocol/limits.ts';
import type { SignedIn } from '../../ctl/client/operator-sign-in.ts';
import { CONTROL_SETTINGS, ctlCommand, readControlUrl, withConnection } from '../../ctl/ctl-connection.ts';
import {
  prepareSessionFile,
  removeSession,
  requireSession,
  sessionPath,
  writeSession,
} from '../../ctl/ctl-credentials.ts';
import { memberLines } from '../../ctl/resource-table.ts';
import { type CliContext, command } from '../../define/define-command.ts';

export const LOGIN_SETTINGS = {
  ...CONTROL_SETTINGS,
  browser: toggle('--browser', 'open the browser; otherwise its page is shown alone', true),
  redirectPort: withDefault(
    integer('--redirect-port <port>', 'loopback port that the browser comes back to; 0 is a free one', {
      min: 0,
      max: MAX_PORT,
    }),
    '0',
  ),
  timeoutMs: withDefault(
    duration('--timeout <duration>', 'how long to wait for the browser', { minMs: 1000 }),
    '5m',
  ),
};
type Values = SettingValues<typeof LOGIN_SETTINGS>;

export const ctlLoginCommand = command({
  name: 'login',
  summary: 'Sign in with the browser; the session is kept for the other commands',
  settings: LOGIN_SETTINGS,
  examples: [
    'proofgate ctl login --control-url https://control.example',
    'proofgate ctl login --control-url https://control.example --no-browser --redirect-port 8250',
  ],
  run: ({ settings }, context) => login(settings, context),
});

async function login(values: Values, context: CliContext): Promise<void> {
  const { untilStopped } = await import('../../../process/program/stop-signal.ts');
  const url = await readControlUrl(values);
  const path = sessionPath(values, url, context.env);
  await prepareSessionFile(path);
  const token = await untilStopped((stop) => beginSession(values, url, stop, context));
  const signedIn = await keepSession(values, { url, token }, path);
  report(signedIn, path, context);
}

/** @returns the session's token */
async function beginSession(
  values: Values,
  url: ControlUrl,
  stop: AbortSignal,
  { env, output }: CliContext,
): Promise<string> {
  const { signIn } = await import('../../ctl/client/operator-sign-in.ts');
  return withConnection(values, { url, token: undefined }, (api) =>
    signIn({
      api,
      controlUrl: url.text,
      port: values.redirectPort,
      timeoutMs: values.timeoutMs,
      stop,
      show(page, code) {
        output.note('sign_in_url', `Sign in with the browser: ${page}`);
        output.note('sign_in_code', `Allow it there only if it shows this code: ${code}`);
        if (values.browser) openBrowser(page, env);
      },
      onStrayAnswer: () =>
        output.note('sign_in_state_mismatch', 'An answer to another sign-in came and was refused'),
    }),
  );
}

/** Ends a session that could not be stored. */
async function keepSession(
  values: Values,
  connection: { readonly url: ControlUrl; readonly token: string },
  path: string,
): Promise<SignedIn> {
  const { readSignedIn, signOut } = await import('../../ctl/client/operator-sign-in.ts');
  return withConnection(values, connection, async (api) => {
    try {
      const signedIn = await readSignedIn(api);
      await writeSession(path, connection.token);
      return signedIn;
    } catch (error) {
      // Report the first error. If this fails too, the session ends when it expires.
      await signOut(api).catch(() => {});
      throw error;
    }
  });
}

function report(
  { actor, display_name, expires_at, roles }: SignedIn,
  path: string,
  { output }: CliContext,
): void {
  if (roles.length === 0) {
    output.note('no_roles', 'You have no role yet: an admin grants one with proofgate ctl create role-grant');
  }
  // Escape names, because another user's name could send commands to the terminal.
  output.result([oneLine(`signed in as ${display_name} (${actor}) until ${expires_at}`)], {
    actor,
    display_name,
    expires_at,
    roles,
    session_file: path,
  });
}

export const ctlLogoutCommand = command({
  name: 'logout',
  summary: 'End the session that `ctl login` began, and remove its file',
  settings: CONTROL_SETTINGS,
  examples: ['proofgate ctl logout --control-url https://control.example'],
  async run({ settings }, context) {
    const { signOut } = await import('../../ctl/client/operator-sign-in.ts');
    const url = await readControlUrl(settings);
    const path = sessionPath(settings, url, context.env);
    const token = await requireSession(path, url);
    // In this order, because a session without its file cannot be ended.
    await withConnection(settings, { url, token }, signOut);
    await removeSession(path);
    context.output.result([`signed out of ${url.text}`], { control_url: url.text });
  },
});

export const ctlWhoamiCommand = ctlCommand({
  name: 'whoami',
  summary: 'Show your identity and roles',
  settings: {},
  examples: ['whoami'],
  async run(api, _input, { output }) {
    const { body } = await api.get('/v1/session');
    return { lines: memberLines(body, output.width), object: body };
  },
});

const OPENERS: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'open',
  freebsd: 'xdg-open',
  linux: 'xdg-open',
};

/** Opens a page in the user's browser if possible. Uses no shell. Does not wait for the opener, so a failure stays unknown. */
function openBrowser(url: string, env: Environment): void {
  const opener = OPENERS[process.platform];
  if (opener === undefined || (opener === 'xdg-open' && !hasDesktop(env))) return;
  try {
    const child = spawn(opener, [url], { env: { ...env }, stdio: 'ignore', detached: true });
    child.on('error', () => {});
    child.unref();
  } catch {
    // The system cannot start a process.
  }
}

/** Without a display, xdg-open would start a terminal browser. */
function hasDesktop({ DISPLAY, WAYLAND_DISPLAY }: Environment): boolean {
  return (DISPLAY ?? '') !== '' || (WAYLAND_DISPLAY ?? '') !== '';
}
