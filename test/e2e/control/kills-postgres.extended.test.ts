/** The kill campaign of `kills-sqlite.extended.test.ts`, on PostgreSQL. */
import { afterAll, beforeAll } from '@jest/globals';
import { postgresDatabase } from '../../support/control/control-database.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { TARGET_NAME } from '../../support/control/site-declaration.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { campaignTimeoutMs, describeKills } from './campaign/describe-kills.ts';

let server: TestPostgresServer;
let databaseUrl = '';
let stage: ControlStage;
beforeAll(async () => {
  server = await TestPostgresServer.start();
  databaseUrl = await server.createDatabase();
  stage = await ControlStage.start({ databaseUrl, targets: [TARGET_NAME] });
}, campaignTimeoutMs);
afterAll(async () => {
  await stage?.stop();
  await server?.stop();
});

describeKills('PostgreSQL', () => ({ stage, database: postgresDatabase(server, databaseUrl) }));
