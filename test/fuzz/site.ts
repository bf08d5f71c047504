/** The site of the test vectors, at their time, with a store that knows no `jti`, so that every valid request is allowed. */
import { compileBundle } from '../../src/bundle/compile/compile.ts';
import type { BundleContent } from '../../src/bundle/format/schema.ts';
import { asContent } from '../../src/bundle/format/shape.ts';
import type { Decision } from '../../src/verifier/decision/decide.ts';
import type { RequestFacts } from '../../src/verifier/decision/facts/request-facts.ts';
import { createMemoryReplayStore } from '../../src/verifier/replay/memory.ts';
import { createVerifier } from '../../src/verifier/verifier.ts';
import { createVerifierMetrics } from '../../src/verifier/verifier-metrics.ts';
import { ALLOWED, contentOf, DENIED } from '../support/protocol/published-vectors.ts';
import type { RequestVector } from '../vectors/make/format.ts';
import { mustHold } from './target.ts';

const BUNDLE = 'site';
export const NOW_SECONDS = 1_795_233_600;
const REALTIME_STALENESS_SECONDS = 10;

export const SITE_CONTENT = asContent('bundle', contentOf(BUNDLE), BUNDLE);
/** Vectors in these very circumstances. */
export const SITE_ALLOWED: readonly RequestVector[] = ALLOWED.filter(isHere);
export const SITE_DENIED: readonly RequestVector[] = DENIED.filter(isHere);

function isHere({ bundle, now, realtime_staleness_seconds }: RequestVector): boolean {
  return (
    bundle === BUNDLE && now === NOW_SECONDS && realtime_staleness_seconds === REALTIME_STALENESS_SECONDS
  );
}

/** A verifier's decision at a site. It must not be an internal error. */
export type Decide = (facts: RequestFacts) => Decision;

export async function openSite(content: BundleContent): Promise<Decide> {
  const snapshot = await compileBundle(content, { file: BUNDLE, head: 'A'.repeat(43) });
  const store = createMemoryReplayStore({ clockSeconds: () => 0, maxRecords: 1 });
  let internalError: unknown;
  const verifier = createVerifier({
    currentSnapshot: () => snapshot,
    replayStore: { ...store, consume: () => ({ kind: 'consumed' }) },
    auditSink: { record: () => true, close: async () => undefined },
    auditMode: 'required',
    metrics: createVerifierMetrics(() => undefined),
    nowMs: () => NOW_SECONDS * 1000,
    realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
    externalOrigin: undefined,
    maxInFlight: 1,
    onInternalError: (error) => {
      internalError = error;
    },
  });
  return (facts) => {
    const decision = verifier.check(facts);
    mustHold(!(decision instanceof Promise), 'a store that answers at once is answered at once');
    if (internalError !== undefined) {
      const error = internalError;
      internalError = undefined;
      throw error;
    }
    return decision;
  };
}

export const decideAtSite = await openSite(SITE_CONTENT);
