/** `proofgate broker` and `proofgate broker rotate-key`. */
import { BROKER_SETTINGS } from '../../broker/program/broker-settings.ts';
import { ROTATE_KEY_SETTINGS, type RotateKeySettings } from '../../broker/program/rotate-key-settings.ts';
import { type CliContext, command } from '../define/define-command.ts';

const rotateKeyCommand = command({
  name: 'rotate-key',
  summary: "Make the broker's next signing key, put it into use, or remove an old one",
  settings: ROTATE_KEY_SETTINGS,
  examples: [
    'proofgate broker rotate-key --key-dir keys --trust-domain shop.example',
    'proofgate broker rotate-key --key-dir keys --trust-domain shop.example --activate bk_7f3c',
    'proofgate broker rotate-key --key-dir keys --trust-domain shop.example --remove bk_19ad',
  ],
  run: ({ settings }, context) => runRotateKey(settings, context),
});

async function runRotateKey(settings: RotateKeySettings, { output }: CliContext): Promise<void> {
  const { rotateKey } = await import('../../broker/program/rotate-key.ts');
  const { algorithm, isCurrent, keyId, step, thumbprint } = await rotateKey(settings);
  const use = isCurrent ? 'in use' : step === 'created' ? 'published, not in use' : 'removed';
  output.result([`${algorithm} key ${keyId} (thumbprint ${thumbprint}): ${use}`], {
    step,
    trust_domain: settings.trustDomain,
    key_id: keyId,
    alg: algorithm,
    thumbprint,
    in_use: isCurrent,
  });
}

export const brokerCommand = command({
  name: 'broker',
  summary: 'Run the broker: issue passports to SPIFFE workloads and registered software keys',
  settings: BROKER_SETTINGS,
  examples: [
    'proofgate broker --public-url https://broker.shop.example --listen 0.0.0.0:9196 --tls-cert-file tls.crt --tls-key-file tls.key ' +
      '--key-dir keys --spiffe-socket unix:///run/spire/agent.sock --challenge-key-file challenge-key',
    'proofgate broker --public-url http://127.0.0.1:9196 --key-dir keys --software-keys software-keys.yaml',
    'proofgate broker --config broker.yaml',
  ],
  members: [rotateKeyCommand],
  run: async ({ settings }, context) => {
    const { runBroker } = await import('../../broker/program/broker-process.ts');
    await runBroker(settings, context);
  },
});
