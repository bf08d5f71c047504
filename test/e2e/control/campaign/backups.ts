/** An operator's backup of Control's database and its restore, as docs/operate/control-upkeep.md "Backup and restore" describes them. */
import { cp, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DATABASE_FILE } from '../../../../src/control/store/sqlite.ts';
import type { ControlStage } from '../../../support/control/control-fixture.ts';
import { dumpDatabase, restoreDatabase } from '../../../support/harness/postgres-dump.ts';
import type { TestPostgresServer } from '../../../support/harness/postgres-server.ts';

export interface ControlBackups {
  take(stage: ControlStage): Promise<void>;
  /** Control must not run. */
  bringBack(stage: ControlStage): Promise<void>;
}

/** The embedded database is copied while Control is stopped. */
export const sqliteBackups: ControlBackups = {
  async take(stage) {
    await stage.stopControl();
    await cp(stage.dataDirectory, backupOf(stage), { recursive: true });
    await stage.startControl();
  },
  async bringBack(stage) {
    // SQLite would take a log beside an older database for that database's own.
    for (const file of await readdir(stage.dataDirectory)) {
      if (file.startsWith(DATABASE_FILE)) await rm(join(stage.dataDirectory, file));
    }
    await cp(backupOf(stage), stage.dataDirectory, { recursive: true });
  },
};

/** Dumps PostgreSQL while Control keeps running. */
export function postgresBackups(server: TestPostgresServer, url: string): ControlBackups {
  return {
    async take(stage) {
      await mkdir(backupOf(stage));
      await dumpDatabase(url, join(backupOf(stage), 'control.dump'));
    },
    bringBack: (stage) => restoreDatabase(server, url, join(backupOf(stage), 'control.dump')),
  };
}

function backupOf({ directory }: ControlStage): string {
  return join(directory, 'backup');
}
