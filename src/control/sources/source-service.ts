/** Facade of all operations on Trust Anchor Sources. Source: docs/control.md "Trust Anchor Source". */

import type { SourceRevisionView, SourceView } from '../../api-contract/sources-contract.ts';
import { found } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { Page } from '../store/repositories/records.ts';
import { SourceActivation } from './source-activation.ts';
import type { RevisionName } from './source-changes.ts';
import { SourceDrafts } from './source-drafts.ts';
import { SourceLifecycle } from './source-lifecycle.ts';
import { SourceValidator, type ValidateSource } from './source-validation.ts';
import { revisionViewNow } from './source-views.ts';

export interface SourceServiceOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly validate: ValidateSource;
  /** Reports that an activation's check did not finish; the source jobs repeat it. */
  readonly report: (error: unknown) => void;
}

export class SourceService {
  readonly drafts: SourceDrafts;
  readonly validator: SourceValidator;
  readonly activation: SourceActivation;
  readonly lifecycle: SourceLifecycle;
  readonly #store: ControlStore;

  constructor({ store, nowMs, validate, report }: SourceServiceOptions) {
    this.#store = store;
    this.drafts = new SourceDrafts({ store, nowMs });
    this.validator = new SourceValidator(store, nowMs, validate);
    this.activation = new SourceActivation(store, nowMs, validate, report);
    this.lifecycle = new SourceLifecycle(store, nowMs);
  }

  /** Returns a source with all its revisions. @throws ApiProblem `not_found` */
  source(sourceId: string): Promise<SourceView> {
    return this.drafts.get(sourceId);
  }

  /** @throws ApiProblem `not_found` */
  revision(name: RevisionName): Promise<SourceRevisionView> {
    return this.#store.read(async (tx) =>
      revisionViewNow(tx, found(await tx.sourceRevisions.find(name.sourceId, name.revision))),
    );
  }

  sourcesOfSite(siteId: string, page: Page): Promise<readonly SourceView[]> {
    return this.drafts.ofSite(siteId, page);
  }
}
