/**
 * Explains a captured request by a published bundle, with the verifier's own steps. Nothing of the request is stored or
 * logged, and one whose proof could still be used is rejected.
 * Source: docs/operate/control-api.md "Explaining a request", docs/operate/explain.md.
 */
import { Compile } from 'typebox/compile';
import { parseMoment } from '../../protocol/rfc3339.ts';
import type { ExplainReport } from '../../verifier/decision/explain/report.ts';
import { linesWithoutNote } from '../../verifier/decision/explain/report-lines.ts';
import {
  type CapturedDenial,
  type ExplainInput,
  parseExplainInput,
} from '../../verifier/explain/captured-request.ts';
import { reportOfEvent } from '../../verifier/explain/event-report.ts';
import { ExplainInputError } from '../../verifier/explain/explain-input-error.ts';
import { proofEndSeconds } from '../../verifier/explain/proof-end.ts';
import { type Moment, momentOf, reportOfRequest } from '../../verifier/explain/request-report.ts';
import { EXPLAIN_REPORT, type ExplanationRequest } from '../contract/explanation-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { ControlStore } from '../store/port.ts';
import { heldBundle } from './held-bundle.ts';

export interface ExplanationsOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
}

export interface Explained {
  readonly explained_by: 'control' | 'verifier';
  readonly report: ExplainReport;
  /** The report as text. */
  readonly lines: readonly string[];
}

/** Compiling a large bundle takes seconds and memory, so one runs at a time and only few may wait. */
const MAX_PENDING = 4;
const RETRY_SECONDS = 2;
/** The verifiers' default. */
const REALTIME_STALENESS_SECONDS = 10;

export class Explanations {
  readonly #options: ExplanationsOptions;
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ExplanationsOptions) {
    this.#options = options;
  }

  /**
   * @throws ApiProblem `request_malformed`, `request_not_json`, `request_invalid`, `proof_not_expired`, `revision_not_held`,
   *   `rate_limited`
   */
  async explain(siteId: string, { request, revision, at }: ExplanationRequest): Promise<Explained> {
    const nowSeconds = Math.floor(this.#options.nowMs() / 1000);
    const wanted = momentIn(at);
    const parsed = readInput(request);
    const input = parsed.kind === 'denial' ? (parsed.request ?? parsed) : parsed;
    if (input.kind === 'denial') return asCaptured(input);
    if (input.kind === 'request') rejectUsableProof(proofEndSeconds(input.check), nowSeconds);
    const moment = momentOf(input, wanted, nowSeconds);
    const preferred = input.recorded?.bundleRevision;
    return this.#inTurn(async () => {
      const bundle = await heldBundle(this.#options.store, { siteId, revision, preferred, nowSeconds });
      const common = {
        bundle,
        moment,
        realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
        showValues: false,
      };
      const report = translated(() =>
        input.kind === 'event'
          ? reportOfEvent({ ...common, recorded: input.recorded })
          : reportOfRequest(input, { ...common, bodyMode: 'buffered', externalOrigin: undefined }),
      );
      return { explained_by: 'control', report, lines: linesWithoutNote(report) };
    });
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#pending >= MAX_PENDING) {
      throw new ApiProblem('rate_limited', undefined, { retryAfterSeconds: RETRY_SECONDS });
    }
    this.#pending += 1;
    const turn = this.#last.then(work).finally(() => {
      this.#pending -= 1;
    });
    // Discards the result, which only the caller receives.
    const done = () => undefined;
    this.#last = turn.then(done, done);
    return turn;
  }
}

function momentIn(at: string | undefined): Moment | undefined {
  if (at === undefined) return undefined;
  const seconds = parseMoment(at);
  if (seconds === undefined) {
    const faults = [{ pointer: '/body/at', reason: 'must be a time in UTC, such as 2026-11-21T04:00:00Z' }];
    throw new ApiProblem('request_malformed', undefined, { faults });
  }
  return { source: 'flag', seconds };
}

function readInput(text: string): ExplainInput {
  return translated(() => parseExplainInput(text));
}

/** Translates errors of the input, which quote nothing of it. */
function translated<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ExplainInputError ? new ApiProblem(error.code, error.message) : error;
  }
}

function rejectUsableProof(endSeconds: number | undefined, nowSeconds: number): void {
  if (endSeconds === undefined || nowSeconds >= endSeconds) return;
  if (!Number.isFinite(endSeconds)) {
    throw new ApiProblem(
      'proof_not_expired',
      'the transcript has no expiry time: remove X-Proofgate-Signature',
    );
  }
  const seconds = endSeconds - nowSeconds;
  const detail = `a verifier could still accept the proof: wait ${seconds} s, or remove X-Proofgate-Signature`;
  throw new ApiProblem('proof_not_expired', detail, { retryAfterSeconds: seconds });
}

const reportShape = Compile(EXPLAIN_REPORT);

/** The explanation that the verifier wrote: the capture has no request to explain again. */
function asCaptured({ explanation, lines }: CapturedDenial): Explained {
  if (!reportShape.Check(explanation)) {
    throw new ApiProblem('request_invalid', '/explanation: this version of Control cannot read it');
  }
  return { explained_by: 'verifier', report: explanation as unknown as ExplainReport, lines };
}
