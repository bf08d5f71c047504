/**
 * Kills the real `proofgate control` with kill -9 under load, again and again. After each kill it compares the database with
 * what was acknowledged. After each start it repeats the submissions that got no answer.
 */
import { join } from 'node:path';
import type { JsonObject } from '../../../../src/protocol/strict-json.ts';
import type { ControlDatabase } from '../../../support/control/control-database.ts';
import type { ControlStage } from '../../../support/control/control-fixture.ts';
import { instanceArguments, instanceEnvironment } from '../../../support/control/control-instance.ts';
import { SITE_ID, TARGET_NAME } from '../../../support/control/site-declaration.ts';
import { startChild } from '../../../support/harness/child.ts';
import { proofgateCommand } from '../../../support/harness/program.ts';
import { waitFor } from '../../../support/wait.ts';
import { Acknowledged } from './acknowledged.ts';
import { EnrollmentLoad } from './enrollment-load.ts';
import { brokenPromises, type DatabaseContents, readContents } from './kept-promises.ts';
import { SiteFollower } from './site-follower.ts';

export interface KillCampaignOptions {
  readonly stage: ControlStage;
  readonly database: ControlDatabase;
  readonly kills: number;
}

export interface KillFigures {
  kills: number;
  /** Kills among these while Control started. */
  killsWhileStarting: number;
  /** Requests that were under way when Control died. */
  submissionsWithoutAnswer: number;
  mutationsAcknowledged: number;
  submissionsRepeated: number;
  lost: number;
  doubled: number;
}

/** This many new answers, and up to as many more, arrive before Control is killed. */
const LEAST_ANSWERS = 4;
const MORE_ANSWERS = 24;
/** After the second of this many kills, Control is killed once more while it starts. */
const START_KILL_EVERY = 4;

export class KillCampaign {
  readonly acknowledged = new Acknowledged();
  readonly figures: KillFigures = {
    kills: 0,
    killsWhileStarting: 0,
    submissionsWithoutAnswer: 0,
    mutationsAcknowledged: 0,
    submissionsRepeated: 0,
    lost: 0,
    doubled: 0,
  };
  /** A description of every fault. */
  readonly findings: string[] = [];
  readonly #options: KillCampaignOptions;
  readonly #load: EnrollmentLoad;

  private constructor(options: KillCampaignOptions, load: EnrollmentLoad, acknowledged: Acknowledged) {
    this.#options = options;
    this.#load = load;
    this.acknowledged = acknowledged;
  }

  static async prepare(options: KillCampaignOptions): Promise<KillCampaign> {
    const { stage } = options;
    const reference = async (name: 'billing' | 'reviewed') => String((await stage.policy(name)).reference);
    const policies = { billing: await reference('billing'), reviewed: await reference('reviewed') };
    const acknowledged = new Acknowledged();
    return new KillCampaign(options, new EnrollmentLoad({ stage, policies, acknowledged }), acknowledged);
  }

  /** Ends with a Control that runs, and every submission answered. */
  async run(): Promise<DatabaseContents> {
    const { stage, database, kills } = this.#options;
    while (this.figures.kills < kills) {
      await this.#killUnderLoad();
      this.#judge(await readContents(database));
      if (this.figures.kills % START_KILL_EVERY === 2) await this.#killWhileStarting();
      await stage.startControl();
      await this.#load.repeat();
    }
    await this.#quiet();
    const contents = await this.#atRest();
    this.#judge(contents);
    this.findings.push(...this.#load.faults);
    this.figures.mutationsAcknowledged = this.acknowledged.mutations;
    this.figures.submissionsRepeated = this.#load.repeated;
    return contents;
  }

  async #killUnderLoad(): Promise<void> {
    const { stage } = this.#options;
    const { acknowledged } = this;
    const enough = acknowledged.mutations + LEAST_ANSWERS + Math.floor(Math.random() * MORE_ANSWERS);
    const stop = new AbortController();
    const running = this.#load.run(stop.signal);
    await waitFor('enough answers', () => (acknowledged.mutations >= enough ? true : undefined));
    await stage.stopControl('SIGKILL');
    stop.abort();
    await running;
    this.figures.kills += 1;
    this.figures.submissionsWithoutAnswer += this.#load.unanswered.length;
  }

  async #killWhileStarting(): Promise<void> {
    const { stage } = this.#options;
    const settings = stage.instanceSettings();
    const command = proofgateCommand(instanceArguments(settings));
    const child = startChild({ ...command, env: instanceEnvironment(settings) });
    // Before it listens, in the middle of opening things: whatever it is at when its first line comes.
    await waitFor('a first line', () => (child.stderrLines.length > 0 ? true : undefined));
    child.signal('SIGKILL');
    await child.exited;
    this.figures.kills += 1;
    this.figures.killsWhileStarting += 1;
  }

  #judge(contents: DatabaseContents): void {
    const broken = brokenPromises(contents, this.acknowledged);
    this.findings.push(...broken);
    this.figures.lost += broken.filter((each) => each.startsWith('lost')).length;
    this.figures.doubled += broken.filter((each) => each.startsWith('doubled')).length;
  }

  /** Whatever was pending when the load ended: the operators go on until nothing is. */
  async #quiet(): Promise<void> {
    const stop = new AbortController();
    const running = this.#load.operate(stop.signal);
    await waitFor('every decision', () => (this.#load.isIdle ? true : undefined));
    stop.abort();
    await running;
  }

  /** SQLite's files can only be read when its process is gone. */
  async #atRest(): Promise<DatabaseContents> {
    const { stage, database } = this.#options;
    await stage.stopControl();
    const contents = await readContents(database);
    await stage.startControl();
    return contents;
  }

  /** Checks that the API shows what was acknowledged. @returns what is missing */
  async missingInApi(): Promise<readonly string[]> {
    const { acknowledged } = this;
    const [enrollments = [], keys = [], clients = []] = await this.#lists(
      'enrollments',
      'derived-keys',
      'clients',
    );
    const keyOf = new Map(enrollments.map((each) => [each.enrollment_id, each.key_id]));
    const statusOf = new Map(keys.map((each) => [each.key_id, each.status]));
    const clientIds = new Set(clients.map((each) => each.client_id));
    const wanted = [...acknowledged.enrollments.values()];
    return [
      ...wanted
        .filter((each) => keyOf.get(each.enrollmentId) !== each.keyId)
        .map((each) => each.enrollmentId),
      ...wanted.flatMap(({ keyId = '' }) => {
        const status = acknowledged.revokedKeyIds.has(keyId) ? 'revoked' : 'active';
        return statusOf.get(keyId) === status ? [] : [keyId];
      }),
      ...[...acknowledged.clientIds].filter((each) => !clientIds.has(each)),
    ];
  }

  /** Compares the follower's state with Control's live keys. @returns the differences that remain after a while */
  async differencesTo(follower: SiteFollower): Promise<readonly string[]> {
    const [keys = []] = await this.#lists('derived-keys');
    let differences: readonly string[] = [];
    const isSame = () => {
      differences = differencesOf(keys, follower);
      return differences.length === 0 ? true : undefined;
    };
    await waitFor('the follower', isSame).catch(() => undefined);
    return [...differences, ...follower.problems.map((code) => `refused ${code}`)];
  }

  /** A target's follower; with a directory of its own it begins empty. */
  follow(directory: string): Promise<SiteFollower> {
    const { stage } = this.#options;
    return SiteFollower.start({
      stage,
      stateDirectory: join(stage.directory, directory),
      tokenFile: join(stage.directory, `${TARGET_NAME}.token`),
    });
  }

  async #lists(...kinds: readonly string[]): Promise<readonly (readonly JsonObject[])[]> {
    const api = await this.#options.stage.api();
    try {
      return await Promise.all(kinds.map((kind) => api.list(`/v1/sites/${SITE_ID}/${kind}`)));
    } finally {
      await api.close();
    }
  }
}

/** A revoked key may stand in a bundle as such; nothing stands there that Control does not know. */
function differencesOf(keys: readonly JsonObject[], follower: SiteFollower): readonly string[] {
  const wrong = keys.flatMap(({ key_id, status }) => {
    const found = follower.statusOf(String(key_id));
    return (status === 'active') === (found === 'active') ? [] : [`${key_id} is ${status}, there ${found}`];
  });
  const known = keys.filter(({ key_id }) => follower.statusOf(String(key_id)) !== undefined).length;
  return follower.keyCount === known
    ? wrong
    : [...wrong, `${follower.keyCount} keys, of which ${known} known`];
}
