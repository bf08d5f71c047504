/** Checks that a program does not change a database with a newer schema, and reports it, on both databases. */
import { describe, expect, it } from '@jest/globals';
import { type ControlStore, SchemaNewerError } from '../../../src/control/store/port.ts';
import { DROP_LAST, reopenedDatabases } from './reopened-databases.ts';

const DATABASES = reopenedDatabases();

async function opened(open: () => Promise<ControlStore>): Promise<void> {
  await (await open()).close();
}

describe.each(['sqlite', 'postgres'] as const)('%s', (name) => {
  const { open, run } = DATABASES[name];

  it('with a step that this program does not know is left alone', async () => {
    await opened(open);
    await run(
      "insert into kysely_migration (name, timestamp) values ('9998-more', '2030-01-01T00:00:00.000Z')",
    );
    await expect(opened(open)).rejects.toThrow(SchemaNewerError);
    await expect(opened(open)).rejects.toThrow('9998-more');
    await run("delete from kysely_migration where name = '9998-more'");
    await opened(open);
  });

  it('that lacks the last step and has one that is not known here does not get the one that it lacks', async () => {
    await opened(open);
    for (const statement of DROP_LAST) await run(statement);
    await run("update kysely_migration set name = '0024-other' where name = '0024-oauth-issuers'");
    await expect(opened(open)).rejects.toThrow(SchemaNewerError);
    await run("delete from kysely_migration where name = '0024-other'");
    // The missing migration runs only now.
    await expect(run('delete from oauth_issuer')).rejects.toThrow();
    await opened(open);
    await run('delete from oauth_issuer');
  });
});
