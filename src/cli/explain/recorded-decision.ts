/** Reads the audit event of a captured request, which has the original decision. Schema: docs/schema/decision-event.schema.json. */
import { DECISION_EVENT_NAME } from '../../telemetry/decision-event.ts';
import { type JsonFields, requestInvalid } from './json-fields.ts';
import { parseMoment } from './moments.ts';

export interface RecordedDecision {
  readonly timeSeconds: number;
  readonly decisionId: string | undefined;
  readonly outcome: 'allowed' | 'denied';
  readonly reason: string | undefined;
  readonly detail: string | undefined;
  readonly method: string | undefined;
  readonly bundleRevision: number | undefined;
  readonly bundleHead: string | undefined;
  readonly transcriptSha256: string | undefined;
}

/** Ignores unknown members, because events can gain some. @throws CliError `request_invalid` */
export function readRecordedDecision(event: JsonFields): RecordedDecision {
  if (event.value('event') !== DECISION_EVENT_NAME) {
    throw requestInvalid(event.at('event'), `must be ${DECISION_EVENT_NAME}`);
  }
  const timeSeconds = parseMoment(event.text('time') ?? '');
  if (timeSeconds === undefined) throw requestInvalid(event.at('time'), 'must be a time in UTC');
  const outcome = event.text('outcome');
  if (outcome !== 'allowed' && outcome !== 'denied') {
    throw requestInvalid(event.at('outcome'), 'must be allowed or denied');
  }
  return {
    timeSeconds,
    outcome,
    decisionId: event.text('decision_id'),
    reason: event.text('reason'),
    detail: event.text('detail'),
    method: event.text('method'),
    bundleRevision: event.integer('bundle_revision'),
    bundleHead: event.text('bundle_head'),
    transcriptSha256: event.text('transcript_sha256'),
  };
}
