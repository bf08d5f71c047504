/**
 * Kills the real verifier with kill -9 while it follows a Control, again and again over one state directory. A real Redis keeps
 * the consumed proofs, so that a restarted verifier serves at once.
 */
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MARK_FILE } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitFor } from '../../support/wait.ts';
import { newCallerKeys } from './generations.ts';
import { judge, type Verdict } from './judge.ts';
import { Publisher } from './publisher.ts';
import { RequestLoad } from './request-load.ts';
import { RequestSigner } from './requests.ts';
import {
  type RunningVerifier,
  spawnVerifier,
  startVerifier,
  type VerifierSettings,
} from './verifier-process.ts';

export interface KillFigures {
  kills: number;
  /** Kills among these while the verifier started. */
  killsWhileStarting: number;
  /** Kills among these after which the state directory held half a write. */
  killsThatLeftSomething: number;
  /** Leftovers by kind. */
  readonly left: Record<string, number>;
  /** Changes of the base that were seen between kills. */
  basesInstalled: number;
  revisionsPublished: number;
  decisions: number;
  allowed: number;
  revisionsServed: number;
  requestsUnanswered: number;
}

const TOKEN = 'target-token';
/** Revisions that it may take before it is killed, and a moment more. */
const MOST_REVISIONS = 8;
const MOST_MOMENT_MS = 40;
/** Requests that each verifier answers. */
const LEAST_ANSWERS = 10;
/** After this many kills, the verifier is killed once more while it starts. */
const START_KILL_EVERY = 4;
const LINE_FEED = 0x0a;

export class KillCampaign {
  readonly figures: KillFigures = {
    kills: 0,
    killsWhileStarting: 0,
    killsThatLeftSomething: 0,
    left: {},
    basesInstalled: 0,
    revisionsPublished: 0,
    decisions: 0,
    allowed: 0,
    revisionsServed: 0,
    requestsUnanswered: 0,
  };
  readonly findings: string[] = [];
  verdict: Verdict | undefined;
  readonly #folder: string;
  readonly #redis: TestRedisServer;
  readonly #publisher: Publisher;
  readonly #load: RequestLoad;
  #verifier: RunningVerifier | undefined;
  #lastBase = '';
  /** How long the last start took. */
  #startMs = 0;
  /** Names of half writes that were counted. */
  readonly #seen = new Set<string>();

  private constructor(folder: string, redis: TestRedisServer, publisher: Publisher, load: RequestLoad) {
    this.#folder = folder;
    this.#redis = redis;
    this.#publisher = publisher;
    this.#load = load;
  }

  static async prepare(): Promise<KillCampaign> {
    const folder = await mkdtemp(join(tmpdir(), 'pg-kills-'));
    const keys = newCallerKeys();
    await mkdir(join(folder, 'state'));
    await writeFile(join(folder, 'token'), TOKEN);
    await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(keys.bundle.publicKey.jwk));
    const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
    const load = new RequestLoad(new RequestSigner(keys));
    return new KillCampaign(folder, redis, await Publisher.start(keys, TOKEN), load);
  }

  get failures(): readonly string[] {
    return this.#load.failures;
  }

  get end() {
    return this.#publisher.control.position;
  }

  /** Ends with a verifier that runs, and nothing more being published. */
  async run(kills: number): Promise<void> {
    this.#load.start();
    this.#publisher.run();
    await this.#start();
    while (this.figures.kills < kills) {
      await this.#follow();
      await this.#kill();
      if (this.figures.kills % START_KILL_EVERY === 0) await this.#killWhileStarting();
      await this.#start();
    }
    await this.#publisher.pause();
    await this.#load.stop();
    await this.#conclude();
  }

  /** The mark once the verifier has taken everything that was published. */
  async catchesUp(): Promise<unknown> {
    const { revision } = this.end;
    await waitFor(`revision ${revision}`, () =>
      this.#publisher.acknowledged === revision ? true : undefined,
    );
    const mark = JSON.parse(await readFile(join(this.#folder, 'state', MARK_FILE), 'utf8'));
    return { revision: mark.revision, head: mark.head };
  }

  async close(): Promise<void> {
    await this.#publisher.pause();
    await this.#load.stop();
    await this.#verifier?.child.stop();
    await this.#publisher.control.close();
    await this.#redis.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #settings(): VerifierSettings {
    const { url } = this.#publisher.control;
    const inFolder = (name: string) => join(this.#folder, name);
    const args = [
      ...[
        '--auth-site',
        AUTH_SITE,
        '--state-dir',
        inFolder('state'),
        '--bundle-key',
        inFolder('key.jwk.json'),
      ],
      ...['--control-url', url, '--control-token-file', inFolder('token'), '--audit', 'required'],
      ...['--audit-file', inFolder('audit.jsonl')],
    ];
    return { args, replay: this.#redis.url };
  }

  /** A restarted verifier does not begin below any revision that it reported or served before. */
  async #start(): Promise<void> {
    const floor = Math.max(this.#load.highestRevision, this.#publisher.acknowledged);
    const startedMs = performance.now();
    const verifier = await startVerifier(this.#settings);
    this.#startMs = performance.now() - startedMs;
    this.#verifier = verifier;
    this.#judgeStart(verifier.child.stderrLines, floor);
    this.#load.pointTo(verifier.address);
  }

  /** Control would heal what was lost: it must not have to. */
  #judgeStart(lines: readonly string[], floor: number): void {
    const [first] = lines.filter((line) => line.includes('"msg":"bundle loaded"'));
    const { revision, source } = first === undefined ? {} : JSON.parse(first);
    if (floor === 0) return;
    if (!(revision >= floor)) this.findings.push(`started with ${revision}, below ${floor}`);
    if (source !== 'state') this.findings.push(`started from ${source}, not from what was kept`);
    this.findings.push(...lines.filter((line) => line.includes('"msg":"bundle refused')));
  }

  /** Some revisions, and into the next one. */
  async #follow(): Promise<void> {
    const revision = this.#publisher.acknowledged + Math.floor(Math.random() * MOST_REVISIONS);
    const answers = this.#load.answers.size + LEAST_ANSWERS;
    const isThere = () =>
      this.#publisher.acknowledged >= revision && this.#load.answers.size >= answers ? true : undefined;
    await waitFor(`revision ${revision} to be acknowledged, and some answers`, isThere);
    await sleep(Math.random() * MOST_MOMENT_MS);
  }

  async #kill(): Promise<void> {
    const child = this.#verifier?.child;
    this.#verifier = undefined;
    if (child?.exitStatus() !== undefined)
      this.findings.push(`it ended by itself: ${child.stderrLines.at(-1)}`);
    this.#load.pointNowhere();
    child?.signal('SIGKILL');
    await child?.exited;
    this.figures.kills += 1;
    await this.#lookAtState();
  }

  async #killWhileStarting(): Promise<void> {
    const child = spawnVerifier(this.#settings);
    await sleep(Math.random() * this.#startMs);
    child.signal('SIGKILL');
    const { signal } = await child.exited;
    if (signal !== 'SIGKILL') this.findings.push(`a start ended by itself: ${child.stderrLines.at(-1)}`);
    this.figures.kills += 1;
    this.figures.killsWhileStarting += 1;
    await this.#lookAtState();
  }

  /** Records the leftovers of interrupted writes. */
  async #lookAtState(): Promise<void> {
    const state = join(this.#folder, 'state');
    const current = await readlink(join(state, 'current')).catch(() => '');
    const found = (await halfWrites(state, current)).filter(({ name }) => !this.#seen.has(name));
    if (found.length > 0) this.figures.killsThatLeftSomething += 1;
    for (const { kind, name } of found) {
      this.#seen.add(name);
      this.figures.left[kind] = (this.figures.left[kind] ?? 0) + 1;
    }
    if (current !== this.#lastBase) this.figures.basesInstalled += 1;
    this.#lastBase = current;
  }

  async #conclude(): Promise<void> {
    const { published, refusals } = this.#publisher;
    const verdict = await judge(join(this.#folder, 'audit.jsonl'), this.#load.answers, published);
    this.verdict = verdict;
    const { allowed, decisions, revisionsServed } = verdict;
    Object.assign(this.figures, { allowed, decisions, revisionsServed });
    this.figures.revisionsPublished = published.size;
    this.figures.requestsUnanswered = this.#load.unanswered;
    this.findings.push(...refusals.map((code) => `refused: ${code}`));
  }
}

interface HalfWrite {
  readonly kind: string;
  readonly name: string;
}

async function halfWrites(state: string, current: string): Promise<readonly HalfWrite[]> {
  const list = (...path: string[]) => readdir(join(state, ...path)).catch(() => []);
  const log = await readFile(join(state, current, 'steps.jsonl')).catch(() => Buffer.alloc(0));
  const isTorn = log.length > 0 && log.at(-1) !== LINE_FEED;
  const kinds: { readonly [kind: string]: readonly string[] } = {
    mark: (await list()).filter((name) => name.startsWith(`.${MARK_FILE}`)),
    link: (await list()).filter((name) => name.startsWith('.current')),
    'incoming base': (await list('bases')).filter((name) => name.startsWith('.incoming')),
    'base that is not current': (await list('bases')).filter(
      (name) => !name.startsWith('.') && name !== basename(current),
    ),
    statement: (await list(current)).filter((name) => name.startsWith('.freshness')),
    step: isTorn ? [`${current} ${log.length}`] : [],
  };
  return Object.entries(kinds).flatMap(([kind, names]) => names.map((name) => ({ kind, name })));
}
