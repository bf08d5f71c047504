/** `proofgate verifier`: runs the ext_authz sidecar. */
import cluster from 'node:cluster';
import {
  VERIFIER_SETTINGS,
  type VerifierSettings,
} from '../../enforcement/programs/verifier/verifier-settings.ts';
import { command } from '../define/define-command.ts';

export const verifierCommand = command({
  name: 'verifier',
  summary: 'Run the ext_authz sidecar: check the passport and proof of every request that Envoy sends to it',
  settings: VERIFIER_SETTINGS,
  examples: [
    'proofgate verifier --auth-site shop-eu-1 --bundle /etc/proofgate/bundle --bundle-key signer.jwk.json ' +
      '--state-dir /var/lib/proofgate --listen unix:/run/proofgate/verifier.sock --replay redis://127.0.0.1:6379',
    'proofgate verifier --config verifier.yaml',
  ],
  run: async ({ settings }, context) => {
    const run = await roleOf(settings);
    await run(settings, context);
  },
});

/** Runs as a worker if a primary started it, as a primary if `--workers` is above 1, otherwise as a single verifier. */
async function roleOf({ workers }: VerifierSettings) {
  if (cluster.isWorker)
    return (await import('../../enforcement/programs/verifier/workers/worker-process.ts')).runWorker;
  if (workers > 1) return (await import('../../enforcement/programs/verifier/workers/primary.ts')).runPrimary;
  return (await import('../../enforcement/programs/verifier/verifier-process.ts')).runVerifier;
}
