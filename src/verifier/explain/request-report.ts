/** Explains a captured request by a bundle: runs the verifier's own steps, and redacts their findings. */

import type { CheckRequest } from '../../process/ext-authz/request-messages.ts';
import { proofTermsOf } from '../../protocol/accepted-credentials.ts';
import type { Origin } from '../../protocol/request-target.ts';
import {
  AUTHORIZATION_HEADER,
  DPOP_HEADER,
  HTTP_SIGNATURE_HEADER,
  PASSPORT_HEADER,
  PASSPORT_SCHEME,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../protocol/wire-names.ts';
import { type Explanation, explainRequest } from '../decision/explain/explain.ts';
import { knownTextsOfRequest, Redaction } from '../decision/explain/redaction.ts';
import {
  type ExplainedBundle,
  type ExplainReport,
  type MomentSource,
  reportOf,
} from '../decision/explain/report.ts';
import type { RequestFacts } from '../decision/facts/request-facts.ts';
import { type EnvoyBodyMode, factsOfCheckRequest } from '../envoy-request/check-request.ts';
import type { CapturedDenial, CapturedRequest, ExplainInput } from './captured-request.ts';
import { headerLinesOf } from './header-lines.ts';

/** The moment that is explained. */
export interface Moment {
  readonly source: MomentSource;
  readonly seconds: number;
}

/** @param wanted moment; default: the input's, or now */
export function momentOf(
  input: Exclude<ExplainInput, CapturedDenial>,
  wanted: Moment | undefined,
  nowSeconds: number,
): Moment {
  const moment =
    input.kind === 'request'
      ? input.moment
      : { source: 'event' as const, seconds: input.recorded.timeSeconds };
  return wanted ?? moment ?? { source: 'now', seconds: nowSeconds };
}

export interface RequestReportOptions {
  readonly bundle: ExplainedBundle;
  readonly moment: Moment;
  readonly realtimeStalenessSeconds: number;
  readonly bodyMode: EnvoyBodyMode;
  /** As the verifier's `--external-origin`. */
  readonly externalOrigin: Origin | undefined;
  readonly showValues: boolean;
}

export function reportOfRequest(captured: CapturedRequest, options: RequestReportOptions): ExplainReport {
  const { bundle, moment, realtimeStalenessSeconds, showValues } = options;
  const facts = factsOf(captured, options);
  const explanation = explainRequest(facts, bundle.snapshot, {
    nowSeconds: moment.seconds,
    realtimeStalenessSeconds,
  });
  const { check, recorded, signedBody } = captured;
  const known = knownTextsOfRequest(explanation);
  return reportOf({
    explanation,
    facts,
    bundle,
    momentSource: moment.source,
    recorded,
    isAsSigned: signedBody !== undefined,
    show: new Redaction({ known, showValues, credentials: credentialsOf(check, explanation) }),
  });
}

function factsOf(
  { check, removesProofs, signedBody }: CapturedRequest,
  { bodyMode, externalOrigin }: RequestReportOptions,
): RequestFacts {
  const received = { ...factsOfCheckRequest(check, bodyMode), removesProofs };
  const facts = signedBody === undefined ? received : { ...received, body: signedBody };
  return externalOrigin === undefined ? facts : { ...facts, ...externalOrigin };
}

const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  AUTHORIZATION_HEADER,
  DPOP_HEADER,
  HTTP_SIGNATURE_HEADER,
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
  const values = headerLinesOf(check)
    .filter(([name]) => CREDENTIAL_HEADERS.has(name))
    .flatMap(([, value]) => piecesOf(value));
  const jti = credentials && proofTermsOf(credentials).jti;
  return [...new Set([...values, ...(jti === undefined ? [] : [jti])])];
}

/** Splits `Scheme a.b.c` and `name=value; name=value`: each part, and the whole. */
function piecesOf(value: string): readonly string[] {
  return [value, ...value.split(/[\s.,;=]+/)].filter(
    (piece) => piece.length >= SHORTEST_PIECE && piece !== PASSPORT_SCHEME,
  );
}
