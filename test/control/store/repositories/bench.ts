import type { ControlStore } from '../../../../src/control/store/port.ts';
import type { Transaction } from '../../../../src/control/store/transaction.ts';
import { addGround, type Ground } from '../../../support/control/store-rows.ts';

/** Fixture for the cases of a repository: one store for all of them, one site for each. */
export interface Bench {
  /** Runs a read-only transaction, as services do. */
  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  write<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  ground(): Promise<Ground>;
}

export function benchOf(store: () => ControlStore): Bench {
  return {
    read: (work) => store().read(work),
    write: (work) => store().writeUnaudited(undefined, work),
    ground: () => addGround(store()),
  };
}

export const ALL = { after: undefined, limit: 1000 };
export const EVERYTHING = { kind: 'everything' } as const;

/** A reach of only these scopes. */
export const below = (ids: {
  readonly environmentIds?: readonly string[];
  readonly fleetIds?: readonly string[];
  readonly siteIds?: readonly string[];
}) => ({ kind: 'below', environmentIds: [], fleetIds: [], siteIds: [], ...ids }) as const;

/** Lists the names page by page. */
export async function pages<T>(
  limit: number,
  list: (page: { readonly after: string | undefined; readonly limit: number }) => Promise<readonly T[]>,
  nameOf: (row: T) => string,
): Promise<readonly (readonly string[])[]> {
  const found: (readonly string[])[] = [];
  for (let after: string | undefined; ; after = found.at(-1)?.at(-1)) {
    const names = (await list({ after, limit })).map(nameOf);
    if (names.length === 0) return found;
    found.push(names);
  }
}
