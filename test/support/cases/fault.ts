/** One fault of a request, and the changes that cause it. */
import type { ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import type { RequestEdits } from '../fixtures/signed-request.ts';
import type { SiteContent } from '../fixtures/snapshot.ts';
import type { OnWire, Outcome } from './denial-case.ts';

/** The caller of the request: a derived key's holder, or a caller with a broker's passport. */
export type TableCaller = 'billing' | 'broker';

export interface Fault {
  readonly step: 1 | 2 | 3 | 4 | 5 | 6;
  readonly outcome: Outcome;
  /** Default: both. */
  readonly only?: TableCaller;
  /** Faults that share one of these words would undo one another. */
  readonly sharesPlace?: readonly string[];
  readonly noBundle?: true;
  readonly content?: (content: SiteContent) => void;
  readonly request?: RequestEdits;
  readonly replay?: ReplayOutcome;
  /** Default plan: billing reads an order. */
  readonly onWire?: readonly OnWire[];
}
