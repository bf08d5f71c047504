/** `proofgate envoy …`: what concerns the gateway in front of the verifier. */
import { type CliContext, defineGroup, type ProofgateCommand } from '../define-command.ts';
import { registerEnvoyLint } from './envoy/envoy-lint.ts';

export function registerEnvoy(parent: ProofgateCommand, context: CliContext): void {
  const group = defineGroup(parent, 'envoy', 'Check the configuration of gateways');
  registerEnvoyLint(group, context);
}
