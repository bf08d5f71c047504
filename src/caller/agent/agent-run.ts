/** Dependencies of the agent on its process, which is `proofgate agent` or the signer. */
import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import type { Environment } from '../../process/program/output.ts';
import type { Logger } from '../../process/telemetry/logger.ts';
import type { createAgentMetrics } from './agent-metrics.ts';

/** What an agent shows to probes and scrapers. */
export interface AgentProbes {
  readonly registry: ReturnType<typeof createAgentMetrics>['registry'];
  readonly readiness: () => readonly ReadinessCheck[];
}

export interface AgentRun {
  readonly env: Environment;
  readonly logger: Logger;
  readonly stop: AbortSignal;
  /** Called when settings and files are valid. @returns a function that is called at the end */
  readonly serve: (probes: AgentProbes) => Promise<() => Promise<void>>;
}
