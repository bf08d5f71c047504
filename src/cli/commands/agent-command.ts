/** `proofgate agent`: keeps a workload's key enrolled, or its passports renewed, while it runs. */
import { AGENT_SETTINGS } from '../../caller/agent/agent-settings.ts';
import { command } from '../define/define-command.ts';

export const agentCommand = command({
  name: 'agent',
  summary: "Keep a workload's key enrolled or its passports renewed, until it is stopped",
  settings: AGENT_SETTINGS,
  examples: [
    'proofgate agent --control-url https://control.shop.example --policy epr_7f3c9a --proof-file /var/run/secrets/proofgate/token --private-key-out /var/run/proofgate/key.pem',
    'proofgate agent --broker-url https://broker.shop.example --spiffe-socket unix:/run/spire/agent.sock --private-key-out /var/run/proofgate/key.pem',
    'proofgate agent --config agent.yaml --admin-listen "[::]:9195"',
  ],
  run: async ({ settings }, context) => {
    const { runAgent } = await import('../../caller/agent/agent-process.ts');
    await runAgent(settings, context);
  },
});
