/** `proofgate ctl logout`: ends the session of `ctl login`. */
import { CONTROL_SETTINGS, readControlUrl, withConnection } from '../../ctl/ctl-connection.ts';
import { requireSession } from '../../ctl/ctl-credentials.ts';
import { removeSession, sessionPath } from '../../ctl/session-file.ts';
import { command } from '../../define-command.ts';

export const ctlLogoutCommand = command({
  name: 'logout',
  summary: 'End the session that `ctl login` began, and remove its file',
  settings: CONTROL_SETTINGS,
  examples: ['proofgate ctl logout --control-url https://control.example'],
  async run({ settings }, context) {
    const { signOut } = await import('../../../client/operator/sign-in.ts');
    const url = await readControlUrl(settings);
    const path = sessionPath(settings, url, context.env);
    const token = await requireSession(path, url);
    // In this order, because a session without its file cannot be ended.
    await withConnection(settings, { url, token }, signOut);
    await removeSession(path);
    context.output.result([`signed out of ${url.text}`], { control_url: url.text });
  },
});
