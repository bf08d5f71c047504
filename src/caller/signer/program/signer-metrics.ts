/**
 * Metrics of the signer, for all of its parts. No label names a peer or a route.
 * Source: docs/operate/signer.md "Metrics".
 */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { instrumentsOf } from '../../../process/telemetry/instruments.ts';

/** The part of the signer that a request came through. */
export type SignerPart = 'egress' | 'ext_authz' | 'api';

/**
 * @param identityEndSeconds Unix time at which the key or its first passport expires, 0 without a usable key; read at
 * each scrape
 */
export function createSignerMetrics(identityEndSeconds: () => number) {
  const registry = new Registry();
  const { counter, reading } = instrumentsOf(registry);
  collectDefaultMetrics({ register: registry });
  const signed = counter(
    'proofgate_signer_signed_total',
    'Signed requests, by the part of the signer.',
    'part',
  );
  const passed = counter(
    'proofgate_signer_passed_total',
    'Requests that went on unsigned (--unsigned pass), by the part of the signer.',
    'part',
  );
  const refused = counter(
    'proofgate_signer_not_signed_total',
    'Requests that were not signed, by the part of the signer and the code.',
    'part',
    'code',
  );
  reading(
    'proofgate_signer_identity_expires_at_seconds',
    'Unix time at which the key, or the first of its passports, ends; 0 without a usable key.',
    identityEndSeconds,
  );
  return {
    registry,
    signed: (part: SignerPart) => signed.inc({ part }),
    passed: (part: SignerPart) => passed.inc({ part }),
    refused: (part: SignerPart, code: string) => refused.inc({ part, code }),
    /** Adds the metrics of an agent in this process. */
    adopt: (agent: Registry) => {
      for (const { name } of agent.getMetricsAsArray()) {
        const metric = agent.getSingleMetric(name);
        if (metric !== undefined && name.startsWith('proofgate_')) registry.registerMetric(metric);
      }
    },
  };
}
