/**
 * Base class of versioned resources. Each change runs in one transaction under one lock. It writes one audit event for each
 * row, with the resource before and after, and records what the next bundle must hold. A change of one row requires a
 * matching version. A declaration writes thousands of rows. It checks under the same lock that none has changed.
 *
 * A resource describes itself with a {@link ResourceKind} and adds its rules in callbacks. Callbacks run inside the
 * transaction, so they must not use the network or have effects outside it.
 */

import { ApiProblem } from '../domain/api-problem.ts';
import type { AuditedChange, AuditedResource, AuditVerb } from '../domain/audit-kinds.ts';
import type { ScopePath } from '../domain/roles.ts';
import type { AuditEntry, Lock, Mutated, Transaction, Transactions } from '../store/port.ts';
import type { Change } from '../store/repositories/changes-repository.ts';
import { endingAt, type RangedPage } from '../store/repositories/ranged-list.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type {
  ChangesOf,
  NameOf,
  NewRowOf,
  VersionedRow,
  VersionedTable,
  VersionedTableName,
} from '../store/repositories/versioned-table.ts';
import { audited, mutateEach, newVersion, publishChange, requireRow, requireVersion } from './change.ts';
import { type Created, createOnce, type Operation } from './operation.ts';

export interface ResourceKind<R extends AuditedResource, T extends VersionedTableName, V extends object> {
  /** The resource's name in audit events. */
  readonly audited: R;
  readonly table: (tx: Transaction) => VersionedTable<T>;
  /** The lock that a change takes. */
  readonly lock: (name: NameOf<T>, store: Transactions) => Lock | Promise<Lock>;
  readonly place: (tx: Transaction, row: RowOf<T>) => ScopePath | Promise<ScopePath>;
  /** The row's name in audit events. */
  readonly id: (row: RowOf<T>) => string;
  /** Rows of one place, as the API shows them. */
  readonly views: (tx: Transaction, rows: readonly RowOf<T>[]) => readonly V[] | Promise<readonly V[]>;
  /** The change to record for the publisher with each row that is written. */
  readonly publishes?: (row: RowOf<T>) => Change;
}

/** Reads the views of rows one after the other. */
export function oneByOne<Row, V>(view: (tx: Transaction, row: Row) => V | Promise<V>) {
  return async (tx: Transaction, rows: readonly Row[]): Promise<readonly V[]> => {
    const views: V[] = [];
    for (const row of rows) views.push(await view(tx, row));
    return views;
  };
}

/** Consequences of a change besides the rows themselves. */
export interface Consequences {
  /** The change to record for the publisher. */
  readonly publish?: Change | undefined;
  /** Runs after the rows are written. @throws ApiProblem `definition_invalid` */
  readonly check?: (() => Promise<void>) | undefined;
  /** Audit events of other resources that change with it. */
  readonly alsoAudited?: readonly AuditEntry[];
}

interface Added<T extends VersionedTableName, S extends object> extends Consequences {
  readonly name: NameOf<T>;
  readonly shownOnce?: S;
}

interface PutContent<T extends VersionedTableName> extends Altered<T> {
  /** Inserts a new row. */
  readonly add: (version: ReturnType<typeof newVersion>) => Promise<void>;
}

interface Altered<T extends VersionedTableName> extends Consequences {
  readonly set: ChangesOf<T>;
}

/** Rows that were written, with their views. */
interface Written<R extends AuditedResource, Row, V> {
  readonly verb: AuditVerb<R> | 'create' | 'change' | 'delete';
  readonly rows: readonly Row[];
  readonly before?: readonly V[] | undefined;
  readonly after?: readonly V[];
}

export interface ResourceDeps {
  readonly store: Transactions;
  readonly nowMs: () => number;
}

export abstract class VersionedResource<
  R extends AuditedResource,
  T extends VersionedTableName,
  V extends object,
> {
  protected readonly store: Transactions;
  protected readonly nowMs: () => number;
  readonly #kind: ResourceKind<R, T, V>;

  constructor({ store, nowMs }: ResourceDeps, kind: ResourceKind<R, T, V>) {
    this.store = store;
    this.nowMs = nowMs;
    this.#kind = kind;
  }

  /** @throws ApiProblem `not_found` */
  get(...name: NameOf<T>): Promise<V> {
    return this.store.read(async (tx) => this.#view(tx, await this.#row(tx, name)));
  }

  protected listRows(rows: (tx: Transaction) => Promise<RangedPage<RowOf<T>>>): Promise<RangedPage<V>> {
    return this.store.readAside(async (tx) => {
      const page = await rows(tx);
      return endingAt(await this.#kind.views(tx, page), page.stoppedAt);
    });
  }

  /** @param add inserts the row @throws ApiProblem `idempotency_conflict`, and what `add` throws */
  protected createRow<S extends object = never>(
    operation: Operation,
    lock: Lock,
    add: (tx: Transaction, nowMs: number) => Promise<Added<T, S>>,
  ): Promise<Created<V, S>> {
    const nowMs = this.nowMs();
    return createOnce<V, S>(this.store, lock, operation, nowMs, async (tx) => {
      const { name, shownOnce, ...consequences } = await add(tx, nowMs);
      const row = await this.#row(tx, name);
      const result = await this.#view(tx, row);
      const created = { verb: 'create', rows: [row], after: [result] } as const;
      const audit = await this.#finish(tx, operation, created, consequences, nowMs);
      return { result, audit, ...(shownOnce === undefined ? {} : { shownOnce }) };
    });
  }

  /** Creates many rows of a site. @param add returns the rows and checks that none exists */
  protected createRows(
    operation: Operation,
    siteId: string,
    items: readonly unknown[],
    add: (tx: Transaction, nowMs: number) => Promise<Consequences & { readonly rows: readonly RowOf<T>[] }>,
  ): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, items, async (tx) => {
      const { rows, ...consequences } = await add(tx, nowMs);
      await this.#kind.table(tx).addAll(rows as unknown as readonly NewRowOf<T>[]);
      const created = { verb: 'create', rows, after: await this.#kind.views(tx, rows) } as const;
      return this.#finish(tx, operation, created, consequences, nowMs);
    });
  }

  /**
   * Creates the row when `version` is undefined, otherwise changes it.
   * @param content returns the columns that are not part of the name
   * @throws ApiProblem `precondition_required`, `precondition_failed`, and what `content` throws
   */
  protected putRow(
    operation: Operation,
    name: NameOf<T>,
    version: number | undefined,
    content: (tx: Transaction, known: RowOf<T> | undefined, nowMs: number) => Promise<PutContent<T>>,
  ): Promise<{ readonly view: V; readonly created: boolean }> {
    return this.#mutate(name, async (tx, nowMs) => {
      const table = this.#kind.table(tx);
      const known = await table.find(...name);
      const before = known && (await this.#view(tx, known));
      const { set, add, ...consequences } = await content(tx, known, nowMs);
      if (known === undefined) {
        if (version !== undefined) throw new ApiProblem('precondition_failed');
        await add(newVersion(nowMs));
      } else {
        if (version === undefined) throw new ApiProblem('precondition_required');
        requireVersion(known, version);
        await table.change(known, set, nowMs);
      }
      const row = await this.#row(tx, name);
      const view = await this.#view(tx, row);
      const verb = known === undefined ? ('create' as const) : ('change' as const);
      const written = { verb, rows: [row], before: before && [before], after: [view] };
      const audit = await this.#finish(tx, operation, written, consequences, nowMs);
      return { result: { view, created: known === undefined }, audit };
    });
  }

  /**
   * @param version the change is based on; undefined for an action, which requires none
   * @throws ApiProblem `not_found`, `precondition_failed`, and what `decide` throws
   */
  protected changeRow(
    operation: Operation,
    name: NameOf<T>,
    version: number | undefined,
    decide: (tx: Transaction, row: RowOf<T>, nowMs: number) => Altered<T> | Promise<Altered<T>>,
    verb: AuditVerb<R> | 'change' = 'change',
  ): Promise<V> {
    return this.#mutate(name, async (tx, nowMs) => {
      const row = await this.#row(tx, name);
      if (version !== undefined) requireVersion(row, version);
      const before = await this.#view(tx, row);
      const { set, ...consequences } = await decide(tx, row, nowMs);
      const result = await this.#view(tx, await this.#kind.table(tx).change(row, set, nowMs));
      const changed = { verb, rows: [row], before: [before], after: [result] };
      return { result, audit: await this.#finish(tx, operation, changed, consequences, nowMs) };
    });
  }

  /** Changes many rows of a site that are unchanged since they were read. @param next returns the new rows */
  protected changeRows(
    operation: Operation,
    siteId: string,
    rows: readonly RowOf<T>[],
    next: (tx: Transaction, nowMs: number) => Promise<Consequences & { readonly rows: readonly RowOf<T>[] }>,
  ): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, rows, async (tx) => {
      const before = await this.#kind.views(tx, rows);
      const { rows: changed, ...consequences } = await next(tx, nowMs);
      const written = await this.#kind.table(tx).changeAll(changed, nowMs);
      const event = { verb: 'change', rows, before, after: await this.#kind.views(tx, written) } as const;
      return this.#finish(tx, operation, event, consequences, nowMs);
    });
  }

  /**
   * @param prepare rejects the removal, or removes what belongs to the row
   * @throws ApiProblem `not_found`, `precondition_failed`, and what `prepare` throws
   */
  protected removeRow(
    operation: Operation,
    name: NameOf<T>,
    version: number,
    prepare: (tx: Transaction, row: RowOf<T>, nowMs: number) => Promise<Consequences>,
  ): Promise<void> {
    return this.#mutate(name, async (tx, nowMs) => {
      const row = await this.#row(tx, name);
      requireVersion(row, version);
      const before = [await this.#view(tx, row)];
      const consequences = await prepare(tx, row, nowMs);
      const removed = { verb: 'delete', rows: [row], before } as const;
      const audit = await this.#finish(tx, operation, removed, consequences, nowMs);
      await this.#kind.table(tx).remove(...name);
      return { result: undefined, audit };
    });
  }

  /** Removes many rows of a site that are unchanged since they were read. @param prepare as in {@link removeRow} */
  protected removeRows(
    operation: Operation,
    siteId: string,
    rows: readonly RowOf<T>[],
    prepare: (tx: Transaction, nowMs: number) => Promise<Consequences>,
  ): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, rows, async (tx) => {
      const before = await this.#kind.views(tx, rows);
      const consequences = await prepare(tx, nowMs);
      const removed = { verb: 'delete', rows, before } as const;
      const audit = await this.#finish(tx, operation, removed, consequences, nowMs);
      await this.#kind.table(tx).removeAll(siteId, rows.map(this.#kind.id));
      return audit;
    });
  }

  async #mutate<A>(
    name: NameOf<T>,
    work: (tx: Transaction, nowMs: number) => Promise<Mutated<A>>,
  ): Promise<A> {
    const nowMs = this.nowMs();
    return this.store.mutate(await this.#kind.lock(name, this.store), (tx) => work(tx, nowMs));
  }

  /** @throws ApiProblem `not_found` */
  async #row(tx: Transaction, name: NameOf<T>): Promise<VersionedRow<T>> {
    return requireRow(await this.#kind.table(tx).find(...name));
  }

  async #view(tx: Transaction, row: RowOf<T>): Promise<V> {
    const [view] = await this.#kind.views(tx, [row]);
    return requireRow(view);
  }

  /** Ends every write, of one row or of many: runs the check and records changes for the publisher. @returns the audit events */
  async #finish(
    tx: Transaction,
    operation: Operation,
    { verb, rows, before, after }: Written<R, RowOf<T>, V>,
    { check, publish, alsoAudited = [] }: Consequences,
    nowMs: number,
  ): Promise<Mutated<V>['audit']> {
    const { audited: resource, id, place: placeOf, publishes } = this.#kind;
    const place = await placeOf(tx, requireRow(rows[0]));
    await check?.();
    const changes = [...(publish === undefined ? [] : [publish]), ...(publishes ? rows.map(publishes) : [])];
    for (const change of changes) await publishChange(tx, requireRow(place.siteId), change, nowMs);
    // The cast is safe: resource and verb come from the same table of audit kinds.
    const what = `${resource}.${verb}` as AuditedChange;
    const [first, ...rest] = rows.map((row, index) =>
      audited(operation, { what, id: id(row), place, before: before?.[index], after: after?.[index] }),
    );
    return [requireRow(first), ...rest, ...alsoAudited];
  }
}

/** Lock of resources whose name begins with their site. */
export function siteLock([siteId]: readonly [siteId: string, ...rest: unknown[]]): Lock {
  return { kind: 'site', siteId };
}
