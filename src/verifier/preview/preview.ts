/**
 * Compares the decisions of recorded events with those that a changed site would make, and counts what changes. Memory does
 * not depend on the number of events.
 * Source: docs/operate/ctl.md "preview".
 */
import type { Reason } from '../../protocol/reasons.ts';
import { type PredictedDenial, type Prediction, predict, type Unknown } from './predict.ts';
import type { PreviewedSite } from './previewed-site.ts';
import { type RecordedDenial, type RecordedFacts, readFacts, type UnreadableLine } from './recorded-facts.ts';

export interface PreviewInputs {
  readonly before: PreviewedSite;
  readonly after: PreviewedSite;
  /** What Control has published: `before` is its content since `policyRevision`, derived keys aside. */
  readonly published: { readonly revision: number; readonly head: string; readonly policyRevision: number };
}

/** Why a line is not judged. */
export type NotJudged =
  | Unknown
  | UnreadableLine
  | 'line_too_long'
  /** Of another Auth Site. */
  | 'other_site'
  /** Decided with another configuration than the current one. */
  | 'other_revision';

export type Judged =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'denied_otherwise' }
  | { readonly kind: 'newly_denied'; readonly denial: PredictedDenial }
  /** The check that denied it passes, and what follows is not known. */
  | { readonly kind: 'possibly_allowed' }
  | { readonly kind: 'not_judged'; readonly why: NotJudged };

/** Denials that depend on derived keys, which may have changed since the event. */
const KEY_DETAILS: ReadonlySet<string | undefined> = new Set(['key_unknown', 'key_revoked', 'key_expired']);

export function judgeFacts(facts: RecordedFacts, { after, before, published }: PreviewInputs): Judged {
  if (facts.authSite !== before.snapshot.authSite) return notJudged('other_site');
  if (!isOfBefore(facts, published)) return notJudged('other_revision');
  const was = predict(facts, before, before);
  if (was.kind === 'unknown') {
    // Only a key that was not there yet may since have appeared.
    const isContradiction = was.isFreed && !KEY_DETAILS.has(facts.denial?.detail);
    return notJudged(isContradiction ? 'contradicts_site' : was.why);
  }
  if (!isRecorded(was, facts)) return notJudged('contradicts_site');
  const will = predict(facts, before, after);
  if (will.kind === 'unknown') {
    return will.isFreed ? { kind: 'possibly_allowed' } : notJudged(will.why);
  }
  if (was.kind === 'allowed') {
    return will.kind === 'allowed' ? { kind: 'unchanged' } : { kind: 'newly_denied', denial: will };
  }
  if (will.kind === 'allowed') return { kind: 'possibly_allowed' };
  const isSame = will.reason === was.reason && (will.detail === was.detail || !will.isDetailKnown);
  return isSame ? { kind: 'unchanged' } : { kind: 'denied_otherwise' };
}

function notJudged(why: NotJudged): Judged {
  return { kind: 'not_judged', why };
}

function isOfBefore({ head, revision }: RecordedFacts, published: PreviewInputs['published']): boolean {
  if (revision === published.revision) return head === published.head;
  return revision >= published.policyRevision && revision < published.revision;
}

/** Whether the site as it is decides as the event says, apart from what became of derived keys. */
function isRecorded(was: Prediction, { denial }: RecordedFacts): boolean {
  if (was.kind === 'allowed') return denial === undefined;
  if (was.kind !== 'denied') return false;
  if (was.reason === 'invalid_request_proof' && KEY_DETAILS.has(was.detail)) return true;
  return was.reason === denial?.reason && was.detail === denial.detail;
}

/** Requests of one caller that change in the same way. */
export interface ChangedRequests {
  readonly route_id: string;
  /** Of the new denial; of the recorded one where requests may be allowed. Null: without one. */
  readonly reason: Reason | null;
  readonly detail: string | null;
  readonly issuer: string;
  readonly subject: string;
  /** Whether the verifier had proven who the caller was. */
  readonly caller_verified: boolean;
  readonly requests: number;
}

export interface ChangeGroup {
  readonly requests: number;
  /** Most requests first, at most {@link MAX_CALLERS}. */
  readonly callers: readonly ChangedRequests[];
  /** Requests of further callers. */
  readonly other_requests: number;
}

export interface PreviewReport {
  readonly judged: number;
  readonly unchanged: number;
  readonly newly_denied: ChangeGroup;
  /** Denied before and after, for another reason. */
  readonly denied_otherwise: number;
  readonly possibly_allowed: ChangeGroup;
  /** By code. */
  readonly not_judged: { readonly [why: string]: number };
}

/** Maximum number of callers that are counted by name, for each kind of change. */
export const MAX_CALLERS = 1000;

export class Preview {
  readonly #inputs: PreviewInputs;
  readonly #notJudged = new Map<NotJudged, number>();
  readonly #denied = new CallerCounts();
  readonly #possiblyAllowed = new CallerCounts();
  #unchanged = 0;
  #otherwise = 0;

  constructor(inputs: PreviewInputs) {
    this.#inputs = inputs;
  }

  /** @param line one audit event as JSON, without line break */
  add(line: string): void {
    const facts = readFacts(line);
    if (typeof facts === 'string') this.skip(facts);
    else this.#count(facts, judgeFacts(facts, this.#inputs));
  }

  #count(facts: RecordedFacts, judged: Judged): void {
    if (judged.kind === 'unchanged') this.#unchanged += 1;
    else if (judged.kind === 'denied_otherwise') this.#otherwise += 1;
    else if (judged.kind === 'not_judged') this.skip(judged.why);
    else if (judged.kind === 'possibly_allowed') this.#possiblyAllowed.add(facts, facts.denial);
    else this.#denied.add(facts, judged.denial);
  }

  /** Counts a line that {@link add} cannot get. */
  skip(why: NotJudged): void {
    this.#notJudged.set(why, (this.#notJudged.get(why) ?? 0) + 1);
  }

  report(): PreviewReport {
    const newlyDenied = this.#denied.group();
    return {
      judged: this.#unchanged + this.#otherwise + newlyDenied.requests,
      unchanged: this.#unchanged,
      newly_denied: newlyDenied,
      denied_otherwise: this.#otherwise,
      possibly_allowed: this.#possiblyAllowed.group(),
      not_judged: Object.fromEntries([...this.#notJudged].sort((a, b) => b[1] - a[1])),
    };
  }
}

class CallerCounts {
  readonly #callers = new Map<string, ChangedRequests & { requests: number }>();
  #requests = 0;
  #others = 0;

  add(facts: RecordedFacts, denial: PredictedDenial | RecordedDenial | undefined): void {
    this.#requests += 1;
    const { caller, routeId = '' } = facts;
    const { issuer = '', subject = '', isVerified = false } = caller ?? {};
    const [reason, detail] = [denial?.reason ?? null, denial?.detail ?? null];
    // None of them contains a space.
    const name = [routeId, reason, detail, issuer, subject, isVerified].join(' ');
    const known = this.#callers.get(name);
    if (known !== undefined) known.requests += 1;
    else if (this.#callers.size >= MAX_CALLERS) this.#others += 1;
    else {
      const members = { route_id: routeId, reason, detail, issuer, subject, caller_verified: isVerified };
      this.#callers.set(name, { ...members, requests: 1 });
    }
  }

  group(): ChangeGroup {
    const callers = [...this.#callers.values()].sort((a, b) => b.requests - a.requests);
    return { requests: this.#requests, callers, other_requests: this.#others };
  }
}
