/** Checks every answer, and the decision's audit event, against the one revision that the event names. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { Generation } from './generations.ts';
import type { Answered } from './request-load.ts';
import { expectedOutcome } from './requests.ts';

/** A revision as it was published. */
export interface Published extends Generation {
  readonly head: string;
}

export interface Verdict {
  decisions: number;
  allowed: number;
  /** Revisions that decisions were made from. */
  revisionsServed: number;
  /** Everything that is not as it should be, in words. */
  readonly findings: string[];
}

/** Outcomes for valid credentials, for which the verifier asked the replay store. */
const PASSING_REASONS: ReadonlySet<string | undefined> = new Set([undefined, 'replay_store_unavailable']);
const MOST_FINDINGS = 10;

/** @param auditFile may hold the events of several processes, one after the other */
export async function judge(
  auditFile: string,
  answers: ReadonlyMap<string, Answered>,
  published: ReadonlyMap<number, Published>,
): Promise<Verdict> {
  const served = new Set<number>();
  const order = new ServedOrder();
  const verdict: Verdict = { decisions: 0, allowed: 0, revisionsServed: 0, findings: [] };
  const left = new Set(answers.keys());
  for await (const line of createInterface({ input: createReadStream(auditFile) })) {
    // A killed process may leave half a line. The next process starts a new line after it.
    const event = parseEvent(line);
    if (event === undefined) continue;
    verdict.decisions += 1;
    if (event.outcome === 'allowed') verdict.allowed += 1;
    const revision = event.bundle_revision ?? 0;
    if (revision > 0) served.add(revision);
    const answer = answers.get(event.decision_id);
    left.delete(event.decision_id);
    const found = [
      order.add(event, answer),
      faultOf(event, published.get(revision)),
      answer && faultOfAnswer(answer, event, published.get(revision)),
    ].filter((fault) => fault !== undefined);
    if (verdict.findings.length < MOST_FINDINGS) verdict.findings.push(...found);
  }
  if (left.size > 0) verdict.findings.push(`${left.size} answers without an event`);
  verdict.revisionsServed = served.size;
  return verdict;
}

/**
 * Checks that no process serves an older revision after a newer one. A decision that waited for the replay store is recorded
 * when the store answers, so only decisions of one process that did not wait are in order.
 */
export class ServedOrder {
  #last = 0;
  /** Highest that any verifier before the current one served. */
  #floor = 0;
  #highest = 0;
  #verifier = 0;

  /** @returns what is wrong with it */
  add(
    {
      bundle_revision: revision = 0,
      outcome,
      reason,
    }: Pick<DecisionEvent, 'bundle_revision' | 'outcome' | 'reason'>,
    answer: Pick<Answered, 'verifier'> | undefined,
  ): string | undefined {
    if (answer === undefined || revision === 0) return undefined;
    if (answer.verifier > this.#verifier) {
      this.#floor = this.#highest;
      this.#verifier = answer.verifier;
    }
    this.#highest = Math.max(this.#highest, revision);
    if (revision < this.#floor) return `revision ${revision}, though one before served ${this.#floor}`;
    const hasWaited = outcome === 'allowed' || PASSING_REASONS.has(reason);
    if (hasWaited) return undefined;
    const before = this.#last;
    this.#last = Math.max(before, revision);
    return revision < before ? `revision ${revision} after ${before}` : undefined;
  }
}

function parseEvent(line: string): DecisionEvent | undefined {
  try {
    const event: DecisionEvent = JSON.parse(line);
    return event.event === 'proofgate.decision' ? event : undefined;
  } catch {
    return undefined;
  }
}

/** A revision and its head belong together; without one there is nothing to decide from. */
function faultOf(event: DecisionEvent, published: Published | undefined): string | undefined {
  if (event.bundle_revision === undefined) return `decided from nothing: ${event.reason}`;
  if (published === undefined) return `revision ${event.bundle_revision} was never published`;
  return event.bundle_head === published.head
    ? undefined
    : `revision ${event.bundle_revision} with another head`;
}

export function faultOfAnswer(
  answer: Answered,
  event: Pick<DecisionEvent, 'bundle_revision' | 'outcome' | 'reason'>,
  published: Published | undefined,
): string | undefined {
  if (published === undefined) return undefined;
  const { kind, outcome, revision } = answer;
  const where = `revision ${event.bundle_revision}: ${kind}`;
  if ((outcome === 'allowed') !== (event.outcome === 'allowed')) return `${where}: answer and event differ`;
  if (revision !== undefined && revision !== event.bundle_revision)
    return `${where}: answered as ${revision}`;
  const wanted = expectedOutcome(kind, published);
  const found = PASSING_REASONS.has(event.reason) ? 'passes' : event.reason;
  return found === wanted ? undefined : `${where}: ${event.reason ?? 'allowed'}, not ${wanted}`;
}
