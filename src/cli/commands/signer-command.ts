/** `proofgate signer`: signs the requests of programs beside it. */
import { SIGNER_SETTINGS } from '../../caller/signer/program/signer-settings.ts';
import { command } from '../define/define-command.ts';

export const signerCommand = command({
  name: 'signer',
  summary: 'Sign the requests of programs beside it: as a proxy, for an egress Envoy, or through a socket',
  settings: SIGNER_SETTINGS,
  examples: [
    'proofgate signer --key /var/run/proofgate/key.pem --listen 127.0.0.1:8081 --upstream https://api.shop.example',
    'proofgate signer --key /var/run/proofgate/key.pem --api-listen unix:/var/run/proofgate/signer.sock',
    'proofgate signer --key /var/run/proofgate/key.pem --ext-authz-listen unix:/var/run/proofgate/ext-authz.sock',
  ],
  run: async ({ settings }, context) => {
    const { runSigner } = await import('../../caller/signer/program/signer-process.ts');
    await runSigner(settings, context);
  },
});
