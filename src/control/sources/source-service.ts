/** Everything that operators do with Trust Anchor Sources. Source: docs/control.md "Trust Anchor Source". */
import type { SourceRevisionView, SourceView } from '../api/contract/sources.ts';
import type { ControlStore } from '../store/port.ts';
import type { Page } from '../store/repositories/records.ts';
import { SourceActivation } from './source-activation.ts';
import { type RevisionName, requireRevision, requireSource } from './source-changes.ts';
import { SourceDrafts } from './source-drafts.ts';
import { SourceLifecycle } from './source-lifecycle.ts';
import { SourceValidator, type ValidateSource } from './source-validation.ts';
import { revisionViewNow, sourceView } from './source-views.ts';

export interface SourceServiceOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly validate: ValidateSource;
  /** A check while activating could not be finished; it is made again by the source jobs. */
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
    this.drafts = new SourceDrafts(store, nowMs);
    this.validator = new SourceValidator(store, nowMs, validate);
    this.activation = new SourceActivation(store, nowMs, validate, report);
    this.lifecycle = new SourceLifecycle(store, nowMs);
  }

  /** With all its revisions. @throws Refusal `not_found` */
  source(sourceId: string): Promise<SourceView> {
    return this.#store.read(async (tx) => sourceView(tx, await requireSource(tx, sourceId)));
  }

  /** @throws Refusal `not_found` */
  revision(name: RevisionName): Promise<SourceRevisionView> {
    return this.#store.read(async (tx) => revisionViewNow(tx, await requireRevision(tx, name)));
  }

  sourcesOfSite(siteId: string, page: Page): Promise<readonly SourceView[]> {
    return this.#store.read(async (tx) => {
      const views: SourceView[] = [];
      for (const row of await tx.sources.list({ siteId }, page)) views.push(await sourceView(tx, row));
      return views;
    });
  }
}
