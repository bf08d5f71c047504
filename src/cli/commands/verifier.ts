/** `proofgate verifier`: the sidecar that Envoy asks about each request. */
import { type CliContext, defineCommand, type ProofgateCommand } from '../define-command.ts';
import { VERIFIER_SETTINGS } from '../verifier/settings.ts';

export function registerVerifier(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'verifier',
    summary: 'Run the ext_authz sidecar: check passport and proof of every request that Envoy asks about',
    settings: VERIFIER_SETTINGS,
    examples: [
      'proofgate verifier --auth-site shop-eu-1 --bundle /etc/proofgate/bundle --bundle-key signer.jwk.json ' +
        '--state-dir /var/lib/proofgate --listen unix:/run/proofgate/verifier.sock --replay redis://127.0.0.1:6379',
      'proofgate verifier --config verifier.yaml',
    ],
    run: async ({ settings }) => {
      const { runVerifier } = await import('../verifier/process.ts');
      await runVerifier(settings, context);
    },
  });
}
