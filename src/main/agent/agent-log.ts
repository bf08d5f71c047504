/** Log lines of the agent: codes, key IDs and times, never a key or a token. Source: docs/workloads.md "Log". */
import type { EnrolledKeyRecord } from '../../client/enroll/enrollment-state.ts';
import { formatMoment } from '../../client/enroll/moments.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { KeeperEvent } from '../../workload/agent/keeper-ports.ts';

export function logKeeperEvent(logger: Logger, event: KeeperEvent): void {
  switch (event.kind) {
    case 'taken_over':
      logger.info({ event: 'key_taken_over', ...keyFields(event.record) }, 'key taken over');
      return;
    case 'enrolling':
      logger.info({ event: 'enrolling', cause: event.cause }, 'enrolling a new key');
      return;
    case 'under_way':
      logger.info({ event: 'enrollment_waiting', ...event.trouble }, 'enrollment under way');
      return;
    case 'replaced':
      logReplaced(logger, event);
      return;
    case 'failed': {
      const { code, text } = event.failure;
      const again_in_ms = Number.isFinite(event.waitMs) ? Math.ceil(event.waitMs) : 'token_change';
      logger.warn({ event: 'enrollment_failed', code, text, again_in_ms }, 'enrollment failed');
      return;
    }
    case 'held_up':
      logger.warn({ event: 'renewal_held_up', ...event.trouble }, 'renewal held up');
      return;
    case 'revoked':
      logger.error({ event: 'key_revoked', ...keyFields(event.record) }, 'key in place was revoked');
      return;
  }
}

function logReplaced(logger: Logger, event: Extract<KeeperEvent, { readonly kind: 'replaced' }>): void {
  const fields = { event: 'key_replaced', verifiers: event.standing, ...keyFields(event.record) };
  if (event.standing === 'ready') logger.info(fields, 'key put in place');
  else logger.warn(fields, 'key put in place, unconfirmed');
}

function keyFields({ key }: EnrolledKeyRecord) {
  return { key_id: key.keyId, expires_at: formatMoment(key.expiresAtMs) };
}
