/** Readiness of the agent for `/readyz`: ready while the installed key is valid. Source: docs/workloads.md "Probes". */
import { formatMoment } from '../../client/enroll/moments.ts';
import { isUsable } from '../../client/enroll/renewal.ts';
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';
import type { KeeperStanding } from '../../workload/agent/keeper-ports.ts';

export function agentReadiness(standing: KeeperStanding, nowMs: number): readonly ReadinessCheck[] {
  const { isUnconfirmed, trouble } = standing;
  const why = trouble && `${trouble.code}: ${trouble.text}`;
  const problem = keyProblem(standing, nowMs);
  const unconfirmed = isUnconfirmed
    ? 'key_unconfirmed: not every verifier is known to have the key: proofgate status says what blocks it'
    : undefined;
  return [
    { name: 'key', problem: problem === undefined ? undefined : [problem, why].filter(Boolean).join('; ') },
    { name: 'renewal', problem: undefined, warning: why ?? unconfirmed },
  ];
}

function keyProblem({ record, isRevoked, trouble }: KeeperStanding, nowMs: number): string | undefined {
  if (record === undefined) {
    return trouble === undefined ? 'not_enrolled: the first enrollment is under way' : 'not_enrolled';
  }
  if (isRevoked) return 'key_revoked: Control revoked the key in place: another one is being enrolled';
  if (isUsable(record, nowMs)) return undefined;
  return `key_expired: the key in place ended at ${formatMoment(record.key.expiresAtMs)}`;
}
