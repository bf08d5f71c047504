/** A case of the conformance suite: the messages of a caller, the state of the verifier, and the expected result. */
import type {
  Expected,
  Protocol,
  PublicCase,
  WireMessage,
} from '../../../src/tools/conformance/wire/conformance-case.ts';
import type { Site } from '../site/site.ts';
import { subjectOf } from '../site/subject.ts';
import type { VerifierState } from '../site/verifier-states.ts';

export interface ConformanceCase {
  /** Unique and stable: the results of the points are kept under it. */
  readonly name: string;
  /** Default `usual`. */
  readonly state?: PointState;
  /** Default both. */
  readonly protocols?: readonly Protocol[];
  readonly expected: Expected;
  /** Headers of the denial that must reach the caller. */
  readonly challenges?: readonly string[];
  /** Signs anew at each call. Of several messages all but the last are allowed. */
  readonly make: (site: Site) => WireMessage | readonly WireMessage[];
}

export type PointState = Exclude<VerifierState, 'redis_twin' | 'bodies_unseen'> | 'standard_proofs';

/** A case of `proofgate conformance`, at the site of the tests. */
export function atSite({ name, expected, passportIn, protocols, make }: PublicCase): ConformanceCase {
  return {
    name,
    expected,
    make: (site) => make(subjectOf(site, passportIn)),
    ...(protocols && { protocols }),
  };
}
