/** Measures a preview of recorded decisions beside `JSON.parse` of the same lines, in turn in one process. */

import { Preview } from '../../src/verifier/preview/preview.ts';
import { SITE_CHANGES } from '../../test/support/cases/site-changes.ts';
import { previewOf } from '../../test/support/fixtures/previewed.ts';
import { signRequest } from '../../test/support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../test/support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../test/support/fixtures/test-verifier.ts';
import { Random } from '../../test/support/random.ts';

export const PREVIEWED_EVENTS = 100_000;
export const PREVIEW_ROUNDS = 7;
/** Most that a preview may cost, as a multiple of `JSON.parse`. */
export const MOST_PREVIEW_RATIO = 5;

export interface PreviewFigures {
  /** Median of the rounds, microseconds an event. */
  readonly previewUs: number;
  readonly parseUs: number;
  /** Median of the rounds' ratios. */
  readonly ratio: number;
}

export async function measurePreview(): Promise<PreviewFigures> {
  const keys = newSiteKeys();
  const content = siteContent(keys);
  const changed = siteContent(keys);
  SITE_CHANGES['a source requires another key binding']?.(changed, new Random(1));
  SITE_CHANGES['a grant goes']?.(changed, new Random(2));
  const [before, after] = [await previewOf(content), await previewOf(changed)];
  const snapshot = await compileSite(content);
  const published = { revision: 7, head: snapshot.head, policyRevision: 7 };
  const lines = eventLines(snapshot, keys);
  const rounds = Array.from({ length: PREVIEW_ROUNDS }, () => {
    const preview = new Preview({ before, after, published });
    const previewMs = timeOf(() => lines.forEach((line) => void preview.add(line)));
    const parseMs = timeOf(() => lines.forEach((line) => void JSON.parse(line)));
    return { previewMs, parseMs };
  });
  const each = (ms: number) => (ms * 1000) / lines.length;
  return {
    previewUs: each(median(rounds.map(({ previewMs }) => previewMs))),
    parseUs: each(median(rounds.map(({ parseMs }) => parseMs))),
    ratio: median(rounds.map(({ parseMs, previewMs }) => previewMs / parseMs)),
  };
}

/** Events of four routes and four callers, each line a string of its own. */
function eventLines(snapshot: Awaited<ReturnType<typeof compileSite>>, keys: ReturnType<typeof newSiteKeys>) {
  const { events, verifier } = createTestVerifier({ snapshot });
  for (const caller of ['billing', 'reporting', 'broker', 'automation'] as const) {
    for (const route of ['orders-read', 'orders-write', 'attested', 'everything'] as const) {
      checkNow(verifier, signRequest(keys, { caller, route }).facts);
    }
  }
  return Array.from({ length: PREVIEWED_EVENTS }, (_, n) =>
    JSON.stringify({ ...events[n % events.length], duration_us: n }),
  );
}

function timeOf(work: () => void): number {
  const startedMs = performance.now();
  work();
  return performance.now() - startedMs;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
