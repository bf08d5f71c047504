/** `proofgate agent`: keeps a workload's key enrolled for as long as it runs. */
import { AGENT_SETTINGS, type AgentValues } from '../../main/agent/agent-settings.ts';
import { type CliContext, defineCommand, type ProofgateCommand } from '../define-command.ts';

export function registerAgent(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'agent',
    summary: "Keep a workload's key enrolled, until it is stopped",
    settings: AGENT_SETTINGS,
    examples: [
      'proofgate agent --control-url https://control.shop.example --policy epr_7f3c9a --proof-file /var/run/secrets/proofgate/token --private-key-out /var/run/proofgate/key.pem',
      'proofgate agent --config agent.yaml --admin-listen "[::]:9195"',
    ],
    run: ({ settings }) => runUntilStopped(settings, context),
  });
}

async function runUntilStopped(settings: AgentValues, context: CliContext): Promise<void> {
  const { fromClientError } = await import('../client-errors.ts');
  const { runAgent } = await import('../../main/agent/agent-process.ts');
  try {
    await runAgent(settings, context);
  } catch (error) {
    throw fromClientError(error);
  }
}
