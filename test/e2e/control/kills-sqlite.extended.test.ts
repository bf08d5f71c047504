/**
 * Kills Control on its embedded database under load: nothing is lost or doubled. `PROOFGATE_TEST_KILLS` sets the number of
 * kills (`make soak`).
 */
import { afterAll, beforeAll } from '@jest/globals';
import { sqliteDatabase } from '../../support/control/control-database.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { TARGET_NAME } from '../../support/control/site-declaration.ts';
import { campaignTimeoutMs, describeKills } from './campaign/describe-kills.ts';

let stage: ControlStage;
beforeAll(async () => {
  stage = await ControlStage.start({ targets: [TARGET_NAME] });
}, campaignTimeoutMs);
afterAll(() => stage?.stop());

describeKills('SQLite', () => ({ stage, database: sqliteDatabase(stage.dataDirectory) }));
