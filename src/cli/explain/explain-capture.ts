/** Builds the report from the settings: reads the capture, loads the bundle and runs the verifier's own steps. */
import { type EnvoyBodyMode, factsOfCheckRequest } from '../../enforcement/ext-authz-grpc/check-request.ts';
import type { CheckRequest } from '../../enforcement/ext-authz-grpc/messages.ts';
import { identityHeadersOf } from '../../enforcement/upstream-headers.ts';
import { usageError } from '../../program/errors.ts';
import { readFileOrInput } from '../../program/input-files.ts';
import { visibleText } from '../../program/visible-text.ts';
import { type Origin, parseOrigin } from '../../protocol/request-target.ts';
import { parseMoment } from '../../protocol/rfc3339.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER,
  PASSPORT_SCHEME,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../protocol/wire-names.ts';
import type { Verified } from '../../verifier/decision/decide.ts';
import { type Explanation, explainRequest } from '../../verifier/decision/explain/explain.ts';
import { isDecisionId, knownTextsOfRequest, Redaction } from '../../verifier/decision/explain/redaction.ts';
import { type ExplainReport, type MomentSource, reportOf } from '../../verifier/decision/explain/report.ts';
import { linesOf } from '../../verifier/decision/explain/report-lines.ts';
import type { RequestFacts } from '../../verifier/decision/request-facts.ts';
import { findDecision } from './audit-search.ts';
import {
  type CapturedDenial,
  type CapturedRequest,
  type ExplainInput,
  parseExplainInput,
} from './captured-request.ts';
import { reportOfEvent } from './event-report.ts';
import type { ExplainSettings } from './explain-settings.ts';
import { loadBundle } from './load-bundle.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** A body of 4 MiB in base64, with the headers. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

/** What `explain` prints. */
export interface ExplainedInput {
  readonly lines: readonly string[];
  readonly members: { readonly [name: string]: unknown };
  readonly outcome: string;
  /** About the trust in the result, or about settings without effect. */
  readonly note: 'signatures_not_checked' | 'explained_by_verifier' | undefined;
}

/** @throws CliError, BundleError */
export async function explainInput(settings: ExplainSettings): Promise<ExplainedInput> {
  const externalOrigin = readExternalOrigin(settings.externalOrigin);
  const flagged = readFlaggedMoment(settings.at);
  const parsed = parseExplainInput(await readInput(settings));
  const input = parsed.kind === 'denial' && hasBundle(settings) ? (parsed.request ?? parsed) : parsed;
  if (input.kind === 'denial') return asCaptured(input, settings);
  const moment = momentOf(input, flagged);
  const report =
    input.kind === 'request'
      ? await explainRequestOf(input, { settings, moment, externalOrigin })
      : await explainEventOf(input.recorded, { settings, moment });
  const note = report.bundle?.signatures === 'not_checked' ? 'signatures_not_checked' : undefined;
  return { lines: linesOf(report), members: { ...report }, outcome: report.decision.outcome, note };
}

/** As the verifier explained it: a text of a file, so it may contain anything. */
function asCaptured(
  { explanation, lines, outcome }: CapturedDenial,
  settings: ExplainSettings,
): ExplainedInput {
  const isSettingUnused = hasBundle(settings) || settings.at !== undefined || settings.showValues;
  const note = isSettingUnused ? 'explained_by_verifier' : undefined;
  return { lines: lines.map(visibleText), members: explanation, outcome, note };
}

async function explainEventOf(
  recorded: RecordedEvent,
  { moment, settings }: Omit<RequestInputs, 'externalOrigin'>,
): Promise<ExplainReport> {
  const bundle = hasBundle(settings) ? await loadBundle(settings, moment.seconds) : undefined;
  const { showValues } = settings;
  const realtimeStalenessSeconds = realtimeStalenessOf(settings);
  return reportOfEvent({ recorded, bundle, moment, realtimeStalenessSeconds, showValues });
}

interface RequestInputs {
  readonly settings: ExplainSettings;
  readonly moment: Moment;
  readonly externalOrigin: Origin | undefined;
}

async function explainRequestOf(
  captured: CapturedRequest,
  { externalOrigin, moment, settings }: RequestInputs,
): Promise<ExplainReport> {
  const bundle = await loadBundle(settings, moment.seconds);
  const facts = factsOf(captured, settings.envoyBody, externalOrigin);
  const explanation = explainRequest(facts, bundle.snapshot, {
    nowSeconds: moment.seconds,
    realtimeStalenessSeconds: realtimeStalenessOf(settings),
  });
  const { check, recorded, signedBody } = captured;
  const show = new Redaction({
    known: knownTextsOfRequest(explanation),
    showValues: settings.showValues,
    credentials: credentialsOf(check, explanation),
  });
  const isAsSigned = signedBody !== undefined;
  return reportOf({
    explanation,
    facts,
    bundle,
    momentSource: moment.source,
    recorded,
    isAsSigned,
    upstreamHeaders,
    show,
  });
}

function upstreamHeaders(verified: Verified) {
  const unused = { decisionId: '', holderThumbprint: '', passportSha256: '' };
  return identityHeadersOf({ ...verified, ...unused, kind: 'allowed' });
}

function hasBundle({ bundle, stateDir }: ExplainSettings): boolean {
  return bundle !== undefined || stateDir !== undefined;
}

function realtimeStalenessOf({ realtimeStalenessMs }: ExplainSettings): number {
  return Math.floor(realtimeStalenessMs / 1000);
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

interface Moment {
  readonly source: MomentSource;
  readonly seconds: number;
}

function readFlaggedMoment(text: string | undefined): Moment | undefined {
  if (text === undefined) return undefined;
  const seconds = text === 'now' ? Math.floor(Date.now() / 1000) : parseMoment(text);
  if (seconds === undefined) {
    throw usageError('bad_time', '--at must be now, or a time in UTC such as 2026-11-21T04:00:00Z');
  }
  return { source: text === 'now' ? 'now' : 'flag', seconds };
}

function momentOf(input: Exclude<ExplainInput, CapturedDenial>, flagged: Moment | undefined): Moment {
  const moment =
    input.kind === 'request'
      ? input.moment
      : { source: 'event' as const, seconds: input.recorded.timeSeconds };
  return flagged ?? moment ?? { source: 'now', seconds: Math.floor(Date.now() / 1000) };
}

/** As the verifier does with its own `--external-origin`. */
function factsOf(
  { check, signedBody }: CapturedRequest,
  bodyMode: EnvoyBodyMode,
  externalOrigin: Origin | undefined,
): RequestFacts {
  const received = factsOfCheckRequest(check, bodyMode);
  const facts = signedBody === undefined ? received : { ...received, body: signedBody };
  return externalOrigin === undefined ? facts : { ...facts, ...externalOrigin };
}

function readExternalOrigin(text: string | undefined): Origin | undefined {
  const origin = text === undefined ? undefined : parseOrigin(text);
  if (text !== undefined && origin === undefined) {
    throw usageError('bad_origin', '--external-origin must be scheme://host[:port] in lower case');
  }
  return origin;
}

const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
  'cookie',
  'proxy-authorization',
]);
/** Minimum length: shorter parts occur in other texts by chance. */
const SHORTEST_PIECE = 6;

/** The credentials of a captured request, because they can also occur elsewhere, as in a query or a header. */
function credentialsOf(check: CheckRequest, { credentials }: Explanation): readonly string[] {
  const http = check.attributes?.request?.http;
  const merged = Object.entries(http?.headers ?? {});
  const raw = (http?.header_map?.headers ?? []).map(({ key, raw_value, value }): [string, string] => [
    key ?? '',
    raw_value === undefined ? (value ?? '') : Buffer.from(raw_value).toString('latin1'),
  ]);
  const values = [...merged, ...raw]
    .filter(([name]) => CREDENTIAL_HEADERS.has(name.toLowerCase()))
    .flatMap(([, value]) => piecesOf(value));
  const jti = credentials?.proof.transcript.jti;
  return [...new Set([...values, ...(jti === undefined ? [] : [jti])])];
}

/** Splits `Scheme a.b.c` and `name=value; name=value`: each part, and the whole. */
function piecesOf(value: string): readonly string[] {
  return [value, ...value.split(/[\s.,;=]+/)].filter(
    (piece) => piece.length >= SHORTEST_PIECE && piece !== PASSPORT_SCHEME,
  );
}
