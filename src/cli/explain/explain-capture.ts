/** Builds the report from the settings: reads the capture, loads the bundle and runs the verifier's own steps. */

import { readFileOrInput } from '../../process/files/input-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { visibleText } from '../../process/program/visible-text.ts';
import type { Origin } from '../../protocol/request-target.ts';
import { parseMoment } from '../../protocol/rfc3339.ts';
import { isDecisionId } from '../../verifier/decision/explain/redaction.ts';
import type { ExplainReport } from '../../verifier/decision/explain/report.ts';
import { linesOf } from '../../verifier/decision/explain/report-lines.ts';
import {
  type CapturedDenial,
  type ExplainInput,
  parseExplainInput,
} from '../../verifier/explain/captured-request.ts';
import { reportOfEvent } from '../../verifier/explain/event-report.ts';
import { type Moment, momentOf, reportOfRequest } from '../../verifier/explain/request-report.ts';
import { findDecision } from './audit-search.ts';
import type { ExplainSettings } from './explain-settings.ts';
import { loadBundle } from './load-bundle.ts';

/** A body of 4 MiB in base64, with the headers. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

/** What `explain` prints. */
export interface ExplainedInput {
  readonly lines: readonly string[];
  readonly members: { readonly [name: string]: unknown };
  readonly outcome: string;
  /** A note about how far to trust the result, or about settings without effect. */
  readonly note: 'signatures_not_checked' | 'explained_by_verifier' | undefined;
}

/** @throws CliError, BundleError, ExplainInputError */
export async function explainInput(settings: ExplainSettings): Promise<ExplainedInput> {
  const { externalOrigin } = settings;
  const flagged = readFlaggedMoment(settings.at);
  const parsed = parseExplainInput(await readInput(settings));
  const input = parsed.kind === 'denial' && hasBundle(settings) ? (parsed.request ?? parsed) : parsed;
  if (input.kind === 'denial') return asCaptured(input, settings);
  const moment = momentOf(input, flagged, nowSeconds());
  const report = await reportOfInput(input, { settings, moment, externalOrigin });
  const note = report.bundle?.signatures === 'not_checked' ? 'signatures_not_checked' : undefined;
  return { lines: linesOf(report), members: { ...report }, outcome: report.decision.outcome, note };
}

/** The verifier's own explanation, which comes from a file and may contain any text. */
function asCaptured(
  { explanation, lines, outcome }: CapturedDenial,
  settings: ExplainSettings,
): ExplainedInput {
  const isSettingUnused = hasBundle(settings) || settings.at !== undefined || settings.showValues;
  const note = isSettingUnused ? 'explained_by_verifier' : undefined;
  return { lines: lines.map(visibleText), members: explanation, outcome, note };
}

interface ReportInputs {
  readonly settings: ExplainSettings;
  readonly moment: Moment;
  readonly externalOrigin: Origin | undefined;
}

async function reportOfInput(
  input: Exclude<ExplainInput, CapturedDenial>,
  { externalOrigin, moment, settings }: ReportInputs,
): Promise<ExplainReport> {
  const { envoyBody: bodyMode, showValues } = settings;
  const common = { moment, realtimeStalenessSeconds: realtimeStalenessOf(settings), showValues };
  if (input.kind === 'request') {
    const bundle = await loadBundle(settings, moment.seconds);
    return reportOfRequest(input, { ...common, bundle, bodyMode, externalOrigin });
  }
  const bundle = hasBundle(settings) ? await loadBundle(settings, moment.seconds) : undefined;
  return reportOfEvent({ ...common, recorded: input.recorded, bundle });
}

function hasBundle({ bundle, stateDir }: ExplainSettings): boolean {
  return bundle !== undefined || stateDir !== undefined;
}

function realtimeStalenessOf({ realtimeStalenessMs }: ExplainSettings): number {
  return Math.floor(realtimeStalenessMs / 1000);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** @throws CliError `set_request_or_decision_id`, `audit_file_required`, `bad_decision_id`, and those of files */
async function readInput({ auditFile, decisionId, request }: ExplainSettings): Promise<string> {
  if ((request === undefined) === (decisionId === undefined)) {
    throw usageError(
      'set_request_or_decision_id',
      'give --request, or --decision-id with --audit-file: one of the two',
    );
  }
  if (request !== undefined) return readFileOrInput(request, MAX_REQUEST_BYTES);
  const id = decisionId ?? '';
  if (!isDecisionId(id)) {
    throw usageError('bad_decision_id', '--decision-id must be a UUID, as in X-Proofgate-Decision-Id');
  }
  if (auditFile === undefined) {
    throw usageError('audit_file_required', '--decision-id needs --audit-file, the file of the verifier');
  }
  return findDecision(auditFile, id);
}

function readFlaggedMoment(text: string | undefined): Moment | undefined {
  if (text === undefined) return undefined;
  const seconds = text === 'now' ? nowSeconds() : parseMoment(text);
  if (seconds === undefined) {
    throw usageError('bad_time', '--at must be now, or a time in UTC such as 2026-11-21T04:00:00Z');
  }
  return { source: text === 'now' ? 'now' : 'flag', seconds };
}
