/** One fault of a request, and how a test makes it. */
import type { ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import type { RequestEdits } from '../fixtures/signed-request.ts';
import type { SiteContent } from '../fixtures/snapshot.ts';

/** Who makes the request: a derived key's holder, or one with a broker's passport. */
export type TableCaller = 'billing' | 'broker';

export interface Fault {
  readonly step: 1 | 2 | 3 | 4 | 5 | 6;
  /** `reason/detail status` */
  readonly outcome: string;
  /** Default: both. */
  readonly only?: TableCaller;
  /** Faults that share one of these words would undo one another. */
  readonly sharesPlace?: readonly string[];
  readonly noBundle?: true;
  readonly content?: (content: SiteContent) => void;
  readonly request?: RequestEdits;
  readonly replay?: ReplayOutcome;
}
