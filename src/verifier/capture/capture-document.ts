/**
 * The captured denial, as `proofgate explain --request` reads it: the audit event and its explanation, in which every secret
 * is redacted. With credentials also the request itself.
 * Source: docs/operate/explain.md "Captured denials".
 */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { DecisionEvent } from '../../process/telemetry/decision-event.ts';
import { REASONS } from '../../protocol/reasons.ts';
import { explainRequest } from '../decision/explain/explain.ts';
import { knownTextsOfRequest, Redaction, redacted } from '../decision/explain/redaction.ts';
import { type RecordedDecision, reportOf } from '../decision/explain/report.ts';
import { linesWithoutNote } from '../decision/explain/report-lines.ts';
import type { RequestFacts } from '../decision/facts/request-facts.ts';

/** A denied request, with the inputs of the decision. */
export interface DeniedRequest {
  readonly facts: RequestFacts;
  readonly snapshot: Snapshot | undefined;
  readonly nowMs: number;
  readonly event: DecisionEvent;
}

export interface CaptureOptions {
  readonly realtimeStalenessSeconds: number;
  readonly keepsCredentials: boolean;
}

/** A longer body is left out. */
const MAX_BODY_BYTES = 1024 * 1024;

export function captureDocument(denied: DeniedRequest, options: CaptureOptions): string {
  const { event, facts } = denied;
  const { report, show } = explain(denied, options);
  const lines = facts.headers.lines().map(([name, value]) => [name.toLowerCase(), value] as const);
  const capture = {
    event,
    explanation: report,
    text: linesWithoutNote(report),
    ...(options.keepsCredentials
      ? { ...requestMembers(facts), headers: lines.map(([name, value]) => `${name}: ${utf8(value)}`) }
      : { header_lengths: lines.map(([name, value]) => `${show.headerName(name)}: ${redacted(value)}`) }),
  };
  return `${JSON.stringify(capture, null, 1)}\n`;
}

function explain(
  { event, facts, nowMs, snapshot }: DeniedRequest,
  { realtimeStalenessSeconds }: CaptureOptions,
) {
  const nowSeconds = Math.floor(nowMs / 1000);
  const explanation = explainRequest(facts, snapshot, { nowSeconds, realtimeStalenessSeconds });
  const show = new Redaction({
    known: knownTextsOfRequest(explanation),
    showValues: false,
    credentials: [],
  });
  const report = reportOf({
    explanation,
    facts,
    bundle: snapshot && { snapshot, signatures: 'valid', warnings: [] },
    momentSource: 'event',
    recorded: recordedOf(event, nowSeconds),
    isAsSigned: false,
    show,
  });
  return { report, show };
}

function recordedOf(event: DecisionEvent, timeSeconds: number): RecordedDecision {
  return {
    timeSeconds,
    decisionId: event.decision_id,
    outcome: event.outcome,
    reason: REASONS.find((known) => known === event.reason),
    detail: event.detail,
    bundleRevision: event.bundle_revision,
    bundleHead: event.bundle_head,
    transcriptSha256: event.transcript_sha256,
  };
}

const utf8 = (value: string): string => Buffer.from(value, 'latin1').toString('utf8');

function requestMembers({ authority, body, method, removesProofs, scheme, target: path }: RequestFacts) {
  const accepts = removesProofs === true ? {} : { accepts_http_signatures: false };
  const request = { method, scheme, authority, path, ...accepts };
  switch (body.kind) {
    case 'none':
      return { ...request, body: '' };
    case 'exact':
      if (body.bytes.byteLength > MAX_BODY_BYTES) return { ...request, body_unknown: true };
      return { ...request, body_base64: Buffer.from(body.bytes).toString('base64') };
    default:
      return { ...request, body_unknown: true };
  }
}
