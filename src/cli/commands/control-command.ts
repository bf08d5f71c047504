/** `proofgate control`: runs the enrollment plane. `proofgate control rotate-master-key` replaces its master key. */
import {
  CONTROL_SETTINGS,
  DATABASE_SETTINGS,
  type DatabaseSettings,
} from '../../control/program/control-settings.ts';
import { type CliContext, command } from '../define/define-command.ts';

const rotateMasterKeyCommand = command({
  name: 'rotate-master-key',
  summary: 'Encrypt the secrets in the database with the first of the two keys in the key file',
  settings: DATABASE_SETTINGS,
  examples: [
    'proofgate control rotate-master-key --data-dir /var/lib/proofgate-control --database-url-file database-url',
    'proofgate control rotate-master-key --data-dir /var/lib/proofgate-control   # embedded database: stop Control first',
  ],
  run: ({ settings }, context) => runRotateMasterKey(settings, context),
});

async function runRotateMasterKey(settings: DatabaseSettings, { output }: CliContext): Promise<void> {
  const { rotateControlMasterKey } = await import('../../control/program/rotate-master-key.ts');
  const { masterKeyFile, signIns, signingKeys } = await rotateControlMasterKey(settings);
  output.result(
    [
      `signing keys: ${signingKeys.changed} encrypted again, ${signingKeys.unchanged} already`,
      `sign-ins: ${signIns.changed} encrypted again, ${signIns.unchanged} already`,
      `done: in two minutes, remove the second line of ${masterKeyFile} and restart every instance`,
    ],
    { signing_keys: signingKeys, sign_ins: signIns },
  );
}

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
  members: [rotateMasterKeyCommand],
  run: async ({ settings }, context) => {
    const { runControl } = await import('../../control/program/control-process.ts');
    await runControl(settings, context);
  },
});
