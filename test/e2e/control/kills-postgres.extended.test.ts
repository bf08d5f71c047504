/** The kill campaign of `kills-sqlite.extended.test.ts`, on PostgreSQL. */
import { afterAll, beforeAll } from '@jest/globals';
import { TestPostgresServer } from '../../fakes/postgres-server.ts';
import { postgresDatabase } from './campaign/control-database.ts';
import { campaignTimeoutMs, describeKills } from './campaign/describe-kills.ts';
import { ControlStage } from './control-fixture.ts';
import { TARGET_NAME } from './site-declaration.ts';

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
