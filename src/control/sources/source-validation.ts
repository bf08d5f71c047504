/**
 * Validates a draft against its issuer. The fetch runs outside any transaction, and its result counts only for the
 * version of the revision that was validated.
 * Source: specification "Trust Anchor Source"; docs/control.md "Trust Anchor Source".
 */

import type { SourceRevisionView } from '../../api-contract/sources-contract.ts';
import type { SourceCoordinates, SourceValidation } from '../issuers/validate-source.ts';
import { found, requireVersion } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import {
  changeRevision,
  mutateRevision,
  type RevisionInHand,
  type RevisionName,
  revisionAudit,
  stateAfter,
} from './source-changes.ts';
import { revisionView } from './source-views.ts';

/** Never rejects. For example `validateSource` with its fetcher. */
export type ValidateSource = (coordinates: SourceCoordinates) => Promise<SourceValidation>;

export class SourceValidator {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;
  readonly #validate: ValidateSource;

  constructor(store: ControlStore, nowMs: () => number, validate: ValidateSource) {
    this.#store = store;
    this.#nowMs = nowMs;
    this.#validate = validate;
  }

  /** @throws ApiProblem `source_state_conflict`, `precondition_failed` when the revision was edited meanwhile */
  async validate(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    const asked = await this.#store.read(async (tx) =>
      found(await tx.sourceRevisions.find(name.sourceId, name.revision)),
    );
    stateAfter(asked.state, 'validation_passed');
    const validation = await this.#validate(asked);
    return mutateRevision(this.#store, name, async (hand) => {
      requireVersion(hand.row, asked.version);
      const after = await this.#apply(hand, validation);
      const verb = validation.kind === 'valid' ? 'validate' : 'fail_validation';
      return { result: revisionView(after), audit: [revisionAudit(verb, operation, hand, after)] };
    });
  }

  async #apply(hand: RevisionInHand, validation: SourceValidation): Promise<RowOf<'sourceRevision'>> {
    const nowMs = this.#nowMs();
    const { tx, row } = hand;
    if (validation.kind === 'invalid') {
      const state = stateAfter(row.state, 'validation_failed');
      await tx.sources.removeKeySet(row.sourceId, row.revision);
      return changeRevision(hand, { state, ...nothingFound(validation) }, nowMs);
    }
    const state = stateAfter(row.state, 'validation_passed');
    await keepKeySet(hand, validation);
    return changeRevision(hand, { state, ...findings(validation, nowMs) }, nowMs);
  }
}

type Valid = Extract<SourceValidation, { readonly kind: 'valid' }>;
type Invalid = Extract<SourceValidation, { readonly kind: 'invalid' }>;

/** Columns of a successful validation. */
export function findings({ fingerprint, detectedScope }: Valid, nowMs: number) {
  return { fingerprint, detectedScope, validatedAtMs: nowMs, failureCode: null, failureDetail: null };
}

function nothingFound({ code, detail }: Invalid) {
  return {
    fingerprint: null,
    detectedScope: null,
    validatedAtMs: null,
    failureCode: code,
    failureDetail: detail,
  };
}

/** Stores the revision's first key set, for verifying tokens. */
export function keepKeySet({ tx, row }: RevisionInHand, { jwks, fetchedAtMs }: Valid): Promise<void> {
  return tx.sources.putKeySet({ sourceId: row.sourceId, revision: row.revision, jwks, fetchedAtMs });
}
