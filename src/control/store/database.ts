import type { Transaction } from 'kysely';
import type { Tables } from './tables.ts';

/** The database handle inside a transaction, which repositories use. */
export type Database = Transaction<Tables>;
