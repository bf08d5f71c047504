/** `proofgate dev`: a site for development in front of an API on this machine. */
import { DEV_SETTINGS } from '../../tools/dev/dev-settings.ts';
import { command } from '../define/define-command.ts';

export const devCommand = command({
  name: 'dev',
  summary: 'Run a throw-away site in front of an API under development, and explain each denial',
  settings: DEV_SETTINGS,
  examples: [
    'proofgate dev --upstream http://127.0.0.1:3000',
    'proofgate dev --upstream http://127.0.0.1:3000 --listen 127.0.0.1:8443 --key dev-key.pem',
  ],
  run: async ({ settings }, { output }) => {
    const { runDev } = await import('../../tools/dev/dev-process.ts');
    await runDev(settings, output);
  },
});
