/** `proofgate verifier`: the sidecar that Envoy asks about each request. */
import cluster from 'node:cluster';
import { VERIFIER_SETTINGS, type VerifierSettings } from '../../main/verifier/verifier-settings.ts';
import { command } from '../define-command.ts';

export const verifierCommand = command({
  name: 'verifier',
  summary: 'Run the ext_authz sidecar: check passport and proof of every request that Envoy asks about',
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

/** The program runs as a worker where its primary started it, as a primary where there are to be workers, else alone. */
async function roleOf({ workers }: VerifierSettings) {
  if (cluster.isWorker) return (await import('../../main/verifier/workers/worker-process.ts')).runWorker;
  if (workers > 1) return (await import('../../main/verifier/workers/primary.ts')).runPrimary;
  return (await import('../../main/verifier/verifier-process.ts')).runVerifier;
}
