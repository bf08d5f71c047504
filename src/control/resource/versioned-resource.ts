/**
 * Base class of versioned resources. Each change runs in one transaction under one lock and requires a matching version.
 * It writes one audit event with the resource before and after, and records what the next bundle must hold.
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
  VersionedRow,
  VersionedTable,
  VersionedTableName,
} from '../store/repositories/versioned-table.ts';
import { audited, newVersion, publishChange, requireRow, requireVersion } from './change.ts';
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
  /** As the API shows it. */
  readonly view: (tx: Transaction, row: RowOf<T>) => V | Promise<V>;
}

/** What follows from a change, beside the row itself. */
interface Consequences {
  /** The change to record for the publisher. */
  readonly publish?: Change | undefined;
  /** Runs after the row is written. @throws ApiProblem `definition_invalid` */
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

interface ResourceEvent<R extends AuditedResource, Row> {
  readonly verb: AuditVerb<R> | 'create' | 'change' | 'delete';
  readonly row: Row;
  readonly before?: object | undefined;
  readonly after?: object | undefined;
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
    return this.store.read(async (tx) => this.#kind.view(tx, await this.#row(tx, name)));
  }

  protected listRows(rows: (tx: Transaction) => Promise<RangedPage<RowOf<T>>>): Promise<RangedPage<V>> {
    return this.store.readAside(async (tx) => {
      const page = await rows(tx);
      const views: V[] = [];
      for (const row of page) views.push(await this.#kind.view(tx, row));
      return endingAt(views, page.stoppedAt);
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
      const after = await this.#kind.view(tx, row);
      const event = { verb: 'create', row, after } as const;
      const audit = await this.#finish(tx, operation, event, consequences, nowMs);
      return { result: after, audit, ...(shownOnce === undefined ? {} : { shownOnce }) };
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
      const before = known && (await this.#kind.view(tx, known));
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
      const after = await this.#kind.view(tx, row);
      const event = { verb: before === undefined ? 'create' : 'change', row, before, after } as const;
      const audit = await this.#finish(tx, operation, event, consequences, nowMs);
      return { result: { view: after, created: before === undefined }, audit };
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
      const before = await this.#kind.view(tx, row);
      const { set, ...consequences } = await decide(tx, row, nowMs);
      const after = await this.#kind.view(tx, await this.#kind.table(tx).change(row, set, nowMs));
      const audit = await this.#finish(tx, operation, { verb, row, before, after }, consequences, nowMs);
      return { result: after, audit };
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
      const before = await this.#kind.view(tx, row);
      const consequences = await prepare(tx, row, nowMs);
      const audit = await this.#finish(tx, operation, { verb: 'delete', row, before }, consequences, nowMs);
      await this.#kind.table(tx).remove(...name);
      return { result: undefined, audit };
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

  /** Runs the check and records the change for the publisher. @returns the audit events */
  async #finish(
    tx: Transaction,
    operation: Operation,
    event: ResourceEvent<R, RowOf<T>>,
    { check, publish, alsoAudited = [] }: Consequences,
    nowMs: number,
  ): Promise<Mutated<V>['audit']> {
    const { verb, row, before, after } = event;
    const place = await this.#kind.place(tx, row);
    await check?.();
    if (publish !== undefined) await publishChange(tx, requireRow(place.siteId), publish, nowMs);
    // The cast is safe: resource and verb come from the same table of audit kinds.
    const what = `${this.#kind.audited}.${verb}` as AuditedChange;
    const entry = audited(operation, { what, id: this.#kind.id(row), place, before, after });
    return [entry, ...alsoAudited];
  }
}

/** Lock of resources whose name begins with their site. */
export function siteLock([siteId]: readonly [siteId: string, ...rest: unknown[]]): Lock {
  return { kind: 'site', siteId };
}
