/** Events that audit sinks accept: decisions of a verifier, and passports of a broker. */
import type { BrokerEvent } from './broker-event.ts';
import type { DecisionEvent } from './decision-event.ts';

export type AuditEvent = BrokerEvent | DecisionEvent;
