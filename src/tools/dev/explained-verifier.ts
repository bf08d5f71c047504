/** A verifier that reports each decision, with an explanation of denials, as it happens. */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { visibleText } from '../../process/program/visible-text.ts';
import type { Denial } from '../../protocol/reasons.ts';
import { pathOf } from '../../protocol/request-target.ts';
import type { Decision, DeniedDecision } from '../../verifier/decision/decide.ts';
import { type ComparedLine, explainRequest, HEADER_LINE } from '../../verifier/decision/explain/explain.ts';
import { hintFor } from '../../verifier/decision/explain/hints.ts';
import type { RequestFacts, RequestHead } from '../../verifier/decision/facts/request-facts.ts';
import type { Verifier } from '../../verifier/verifier.ts';

/** One decision for the terminal. Contains no credential and no header value. */
export interface DecisionReport {
  readonly lines: readonly string[];
  readonly members: { readonly [member: string]: unknown };
}

export interface Explaining {
  readonly snapshot: () => Snapshot | undefined;
  readonly realtimeStalenessSeconds: number;
  readonly report: (report: DecisionReport) => void;
}

export function explainedVerifier(verifier: Verifier, explaining: Explaining): Verifier {
  const seen = (facts: RequestFacts, decision: Decision): Decision => {
    explaining.report(reportOf(facts, decision, () => differencesOf(facts, explaining)));
    return decision;
  };
  return {
    ...verifier,
    check: (facts, call) => {
      const decision = verifier.check(facts, call);
      return decision instanceof Promise ? decision.then((made) => seen(facts, made)) : seen(facts, decision);
    },
    refuse: (facts, denial, call) => seen(facts, verifier.refuse(facts, denial, call)),
    awaitBody: (head, call) => {
      const awaited = verifier.awaitBody(head, call);
      if (awaited.kind === 'denied') explaining.report(reportOf(head, awaited, () => []));
      return awaited;
    },
  };
}

/** Replaces advice for operators, because the site of `proofgate dev` cannot be changed. */
function devHint(denial: Denial, target: string, compared: readonly ComparedLine[]): string {
  switch (`${denial.reason}/${denial.detail}`) {
    case 'invalid_request_proof/authorization_missing':
      return 'the request is not signed: send it by one of the lines printed at start';
    case 'bundle_route_missing/no_match':
      return pathOf(target).endsWith('/')
        ? 'a route matches no path that ends with "/": call it without'
        : 'only GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS and QUERY have routes here';
    default:
      return hintFor(denial, compared);
  }
}

function reportOf(
  { authority, method, scheme, target }: RequestHead,
  decision: Decision | DeniedDecision,
  differences: () => readonly ComparedLine[],
): DecisionReport {
  const request = visibleText(`${method} ${scheme}://${authority}${target}`);
  if (decision.kind !== 'denied') {
    return { lines: [`${decision.kind}  ${request}`], members: { outcome: decision.kind, request } };
  }
  const { detail, reason, status } = decision.denial;
  const compared = reason === 'request_binding_mismatch' ? differences() : [];
  const hint = devHint(decision.denial, target, compared);
  const fault = detail === undefined ? reason : `${reason} (${detail})`;
  return {
    lines: [
      `DENIED   ${request}`,
      `         ${status} ${fault}`,
      ...compared.flatMap(linesOfDifference),
      `         ${hint}`,
    ],
    members: {
      outcome: 'denied',
      request,
      status,
      reason,
      detail,
      hint,
      different: compared.map(memberOfDifference),
    },
  };
}

function differencesOf(facts: RequestFacts, { realtimeStalenessSeconds, snapshot }: Explaining) {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const explanation = explainRequest(facts, snapshot(), { nowSeconds, realtimeStalenessSeconds });
  return explanation.transcript.filter(({ isEqual }) => !isEqual);
}

function memberOfDifference({ name, rebuilt, signed }: ComparedLine) {
  if (name.startsWith(HEADER_LINE)) return { name };
  return { name, signed, received: rebuilt.kind === 'value' ? rebuilt.value : null };
}

function linesOfDifference({ name, rebuilt, signed }: ComparedLine): readonly string[] {
  if (name.startsWith(HEADER_LINE)) return [`         ${visibleText(name)} differs`];
  const received = rebuilt.kind === 'value' ? rebuilt.value : `unknown: ${rebuilt.why}`;
  return [
    `         ${name} signed:   ${visibleText(signed ?? 'not signed')}`,
    `         ${name} received: ${visibleText(received)}`,
  ];
}
