/** Reads the audit event of a decision. Schema: docs/reference/schema/decision-event.schema.json. */

import { DECISION_EVENT_NAME } from '../../process/telemetry/decision-event.ts';
import { REASONS } from '../../protocol/reasons.ts';
import { parseMoment } from '../../protocol/rfc3339.ts';
import type { RecordedDecision } from '../decision/explain/report.ts';
import { type JsonFields, requestInvalid } from './json-fields.ts';

/** The whole event, as far as it helps without its request. */
export interface RecordedEvent extends RecordedDecision {
  readonly status: number | undefined;
  readonly authSite: string | undefined;
  readonly routeId: string | undefined;
  readonly method: string | undefined;
  readonly issuer: string | undefined;
  readonly subject: string | undefined;
  readonly trustDomain: string | undefined;
  readonly keyId: string | undefined;
  readonly keyBinding: string | undefined;
  readonly clientId: string | undefined;
  readonly isCallerVerified: boolean;
}

/** Ignores unknown members, because events can gain some. @throws ExplainInputError `request_invalid` */
export function readRecordedEvent(event: JsonFields): RecordedEvent {
  if (event.value('event') !== DECISION_EVENT_NAME) {
    throw requestInvalid(event.at('event'), `must be ${DECISION_EVENT_NAME}`);
  }
  const timeSeconds = parseMoment(event.text('time') ?? '');
  if (timeSeconds === undefined) throw requestInvalid(event.at('time'), 'must be a time in UTC');
  const outcome = event.text('outcome');
  if (outcome !== 'allowed' && outcome !== 'denied' && outcome !== 'observed') {
    throw requestInvalid(event.at('outcome'), 'must be allowed, denied or observed');
  }
  const reason = event.text('reason');
  return {
    timeSeconds,
    outcome,
    decisionId: event.text('decision_id'),
    reason: REASONS.find((known) => known === reason),
    detail: event.text('detail'),
    status: event.integer('status'),
    authSite: event.text('auth_site'),
    routeId: event.text('route_id'),
    method: event.text('method'),
    issuer: event.text('issuer'),
    subject: event.text('subject'),
    trustDomain: event.text('trust_domain'),
    keyId: event.text('key_id'),
    keyBinding: event.text('key_binding'),
    clientId: event.text('client_id'),
    isCallerVerified: event.value('caller_verified') === true,
    bundleRevision: event.integer('bundle_revision'),
    bundleHead: event.text('bundle_head'),
    transcriptSha256: event.text('transcript_sha256'),
  };
}
