/** A common interface to both databases, so that each test of the store runs on both. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ControlStore, ReportIncident } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { createMigratedDatabase, openMigratedStore } from '../../support/control/migrated-store.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';

export const NOW_MS = 1_795_233_600_000;

interface OpenOptions {
  readonly nowMs?: () => number;
  readonly report?: ReportIncident;
}

/** Opens a separate database without rows at first; reopening it finds the stored data. */
export type Opener = (options?: OpenOptions) => Promise<ControlStore>;

export interface DatabaseKind {
  readonly name: 'sqlite' | 'postgres';
  start(): Promise<void>;
  fresh(): Promise<Opener>;
  stop(): Promise<void>;
}

/** Each test file starts its own databases, because files run in separate processes. */
export function databaseKinds(): readonly DatabaseKind[] {
  return [sqlite(), postgres()];
}

function sqlite(): DatabaseKind {
  const directories: string[] = [];
  return {
    name: 'sqlite',
    start: async () => {},
    async fresh() {
      const dataDirectory = await mkdtemp(join(tmpdir(), 'proofgate-store-'));
      directories.push(dataDirectory);
      return (options) => openMigratedStore({ dataDirectory, nowMs: () => NOW_MS, ...options });
    },
    async stop() {
      for (const directory of directories) await rm(directory, { recursive: true, force: true });
    },
  };
}

function postgres(): DatabaseKind {
  let server: TestPostgresServer | undefined;
  return {
    name: 'postgres',
    async start() {
      server = await TestPostgresServer.start();
    },
    async fresh() {
      if (server === undefined) throw new Error('not started');
      const url = await createMigratedDatabase(server);
      return (options) => openPostgresStore({ url, nowMs: () => NOW_MS, ...options });
    },
    stop: async () => server?.stop(),
  };
}
