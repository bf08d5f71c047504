/** `proofgate control`: runs the enrollment plane. */
import { CONTROL_SETTINGS } from '../../main/control/control-settings.ts';
import { command } from '../define-command.ts';

export const controlCommand = command({
  name: 'control',
  summary: 'Run Control: sources, enrollment, and the bundles that verifiers follow',
  settings: CONTROL_SETTINGS,
  examples: [
    'proofgate control --data-dir /var/lib/proofgate-control',
    'proofgate control --listen 0.0.0.0:9193 --public-url https://control.shop.example --tls-cert tls.crt --tls-key tls.key ' +
      '--data-dir /var/lib/proofgate-control --database-url-file database-url',
    'proofgate control --config control.yaml',
  ],
  run: async ({ settings }, context) => {
    const { runControl } = await import('../../main/control/control-process.ts');
    await runControl(settings, context);
  },
});
