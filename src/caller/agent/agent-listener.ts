/** Opens the agent's admin listener: probes and metrics. */
import {
  type AdminListener,
  openAdminListener,
  type ReadinessCheck,
} from '../../process/admin/admin-server.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import type { HostAndPort } from '../../process/settings/listen-address.ts';

interface MetricsRegistry {
  readonly contentType: string;
  metrics(): Promise<string>;
}

/** @throws CliError `listen_failed` */
export async function openAgentListener(
  address: HostAndPort,
  registry: MetricsRegistry,
  readiness: () => readonly ReadinessCheck[],
): Promise<AdminListener> {
  try {
    return await openAdminListener({
      ...address,
      readiness,
      metrics: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
    });
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    const { host, port } = address;
    const shown = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    throw usageError('listen_failed', `cannot listen on ${shown}: ${code}`);
  }
}
