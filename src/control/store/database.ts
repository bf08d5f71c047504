import type { Transaction } from 'kysely';
import type { Tables } from './tables.ts';

/** The database inside a transaction: what repositories speak to. */
export type Database = Transaction<Tables>;
