/**
 * A test runner for Stryker ("Creating a plugin", TestRunner) whose processes load all tests once. For each mutant they run the
 * tests that reach it until one fails, starting with those most likely to fail soon. The failed test then runs without the
 * mutant: only if it passes, the mutant counts as detected. If it fails, state of another mutant remains, and Stryker
 * starts a new process.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { join } from 'node:path';
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';
import {
  DryRunStatus,
  determineHitLimitReached,
  MutantRunStatus,
  TestStatus,
} from '@stryker-mutator/api/test-runner';

// Registered before any module that it must load.
register(new URL('module-hooks.mjs', import.meta.url));
const { onTests, TestFile } = await import('./test-files.mjs');
const { isMeantFor, MUTATED_FOLDERS, testFiles } = await import('./tests.mjs');

/** Deadline of a test or hook with a mutant: this time, plus a multiple of its time without the mutant. */
const LEAST_TIMEOUT_MS = 3_000;
const TIMEOUT_FACTOR = 5;
/** Weight of earlier observations of a file at each run, because the same tests detect neighbouring mutants. */
const KEPT = 0.8;
/**
 * Stryker's own limit ends a mutant whose hit count is a hundred times the normal one. This share of it ends an endless loop
 * sooner.
 */
const HIT_LIMIT_SHARE = 0.1;
/** Durations of each file without mutants, which the first process writes and all processes read. */
const COSTS = new URL('../../.build/mutation-costs.json', import.meta.url);

/** The interface of the instrumented code. */
// biome-ignore lint/suspicious/noAssignInExpressions: created here or by instrumented code, whichever runs first
const instrumented = (globalThis.__stryker__ ??= {});

/** Stryker assigns each covered line to one test, so lines that a `beforeAll` covers are assigned to each of its tests. */
function coverageListeners() {
  const shared = 'several tests';
  let ids = [];
  return {
    started: (startedIds) => {
      ids = startedIds;
      instrumented.currentTestId = ids.length === 1 ? ids[0] : shared;
    },
    ended: () => {
      instrumented.currentTestId = undefined;
      const perTest = instrumented.mutantCoverage?.perTest;
      const hits = Object.entries(perTest?.[shared] ?? {});
      if (hits.length === 0) return;
      delete perTest[shared];
      for (const id of ids) {
        perTest[id] ??= {};
        for (const [mutant, count] of hits) perTest[id][mutant] = (perTest[id][mutant] ?? 0) + count;
      }
    },
  };
}

class LoadedFile {
  file;
  /** Time of hooks and everything else, and of each test by its ID. */
  #cost = { otherMs: 0, testsMs: {} };
  #runs = 0;
  #notices = 0;

  constructor(file) {
    this.file = file;
  }

  get path() {
    return this.file.path;
  }

  get ids() {
    return this.file.ids;
  }

  set cost(cost) {
    this.#cost = cost;
  }

  /** Runs all tests of the file without a mutant. */
  async measure() {
    const startMs = performance.now();
    const results = await this.file.run();
    const passedMs = performance.now() - startMs;
    const testsMs = Object.fromEntries(results.map(({ durationMs, id }) => [id, durationMs]));
    const otherMs = Math.max(0, passedMs - results.reduce((sum, { durationMs }) => sum + durationMs, 0));
    return { results, cost: { otherMs, testsMs } };
  }

  /** The time of these tests divided by the probability that they detect the mutant. */
  expectedCost(ids) {
    let durationMs = this.#cost.otherMs;
    for (const id of ids) durationMs += this.#cost.testsMs[id] ?? 0;
    return durationMs / ((this.#notices + 0.2) / (this.#runs + 1));
  }

  /** The deadline of a run with a mutant. */
  get mostMs() {
    const ofTest = (id) => LEAST_TIMEOUT_MS + TIMEOUT_FACTOR * (this.#cost.testsMs[id] ?? 0);
    return { ofTest, ofHook: LEAST_TIMEOUT_MS + TIMEOUT_FACTOR * this.#cost.otherMs };
  }

  remember(hasNoticed) {
    this.#runs = this.#runs * KEPT + 1;
    this.#notices = this.#notices * KEPT + (hasNoticed ? 1 : 0);
  }
}

export class LoadingOnceTestRunner {
  #files = [];
  #hasCosts = false;

  capabilities() {
    return { reloadEnvironment: false };
  }

  async init() {
    onTests(coverageListeners());
    for (const path of testFiles()) this.#files.push(new LoadedFile(await TestFile.load(path)));
  }

  /** Runs them twice, because tests that cannot be repeated would seem to detect every mutant. */
  async dryRun() {
    const tests = [];
    const costs = {};
    for (const loaded of this.#files) {
      const { cost, results } = await loaded.measure();
      costs[loaded.path] = cost;
      tests.push(...results.map((result) => reported(result, loaded.path)));
    }
    const mutantCoverage = coverageOfMeant(this.#files, structuredClone(instrumented.mutantCoverage));
    const failed = await this.#failuresOfSecondRun();
    if (failed.length > 0) {
      const errorMessage = `tests that fail when they are run again: ${failed.join('; ')}`;
      return { status: DryRunStatus.Error, errorMessage };
    }
    mkdirSync(new URL('.', COSTS), { recursive: true });
    writeFileSync(COSTS, JSON.stringify(costs));
    return { status: DryRunStatus.Complete, tests, mutantCoverage };
  }

  async #failuresOfSecondRun() {
    const failed = [];
    for (const { file } of this.#files) {
      const results = await file.run();
      failed.push(...results.filter(({ status }) => status === 'failed').map(({ id }) => id));
    }
    return failed;
  }

  async mutantRun({ activeMutant, testFilter, ...given }) {
    this.#readCosts();
    const hitLimit = given.hitLimit && Math.ceil(given.hitLimit * HIT_LIMIT_SHARE);
    let testCount = 0;
    for (const { ids, loaded } of this.#reaching(new Set(testFilter))) {
      const results = await this.#runMutated(loaded, ids, activeMutant.id, hitLimit);
      const reached = determineHitLimitReached(instrumented.hitCount, hitLimit);
      instrumented.hitCount = undefined;
      if (reached !== undefined) return { status: MutantRunStatus.Timeout, reason: reached.reason };
      testCount += results.filter(({ status }) => status !== 'skipped').length;
      const failure = results.find(({ status }) => status === 'failed');
      loaded.remember(failure !== undefined);
      if (failure === undefined) continue;
      await assertPasses(loaded.file, failure.id);
      return {
        status: MutantRunStatus.Killed,
        killedBy: [failure.id],
        failureMessage: failure.failure,
        nrOfTests: testCount,
      };
    }
    return { status: MutantRunStatus.Survived, nrOfTests: testCount };
  }

  #readCosts() {
    if (this.#hasCosts) return;
    this.#hasCosts = true;
    const costs = JSON.parse(readFileSync(COSTS, 'utf8'));
    for (const loaded of this.#files) loaded.cost = costs[loaded.path] ?? { otherMs: 0, testsMs: {} };
  }

  /** @throws Error when a test has another name in each process, and would be skipped in most */
  #reaching(wanted) {
    const known = new Set(this.#files.flatMap(({ ids }) => ids));
    const unknown = [...wanted].find((id) => !known.has(id));
    if (unknown !== undefined) throw new Error(`no such test in this process: ${unknown}`);
    return this.#files
      .map((loaded) => {
        const ids = new Set(loaded.ids.filter((id) => wanted.has(id)));
        return { loaded, ids, cost: loaded.expectedCost(ids) };
      })
      .filter(({ ids }) => ids.size > 0)
      .sort((a, b) => a.cost - b.cost);
  }

  async #runMutated({ file, mostMs }, ids, mutantId, hitLimit) {
    instrumented.activeMutant = mutantId;
    instrumented.hitLimit = hitLimit;
    instrumented.hitCount = hitLimit === undefined ? undefined : 0;
    try {
      return await file.run({ ids, mostMs, stopsAtFailure: true });
    } finally {
      instrumented.activeMutant = undefined;
    }
  }
}

/** @throws Error when it also fails without a mutant */
async function assertPasses(file, id) {
  const results = await file.run({ ids: new Set([id]) });
  const again = results.find((result) => result.id === id);
  if (again?.status !== 'passed') throw new Error(`fails without the mutant too: ${id}: ${again?.failure}`);
}

/** Excludes code that tests reach in files for which they are not meant. */
function coverageOfMeant(files, { perTest, static: whileLoading }) {
  const mutatedPaths = new Map(MUTATED_FOLDERS.flatMap(mutantsIn));
  const meant = {};
  for (const { ids, path } of files) {
    for (const id of ids) {
      const hits = Object.entries(perTest[id] ?? {});
      meant[id] = Object.fromEntries(hits.filter(([mutant]) => isMeantFor(path, mutatedPaths.get(mutant))));
    }
  }
  return { perTest: meant, static: whileLoading };
}

/** @returns pairs of a mutant's ID and the file that it is in */
function mutantsIn(folder) {
  const paths = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith('.ts'));
  return paths.flatMap((path) => {
    const text = readFileSync(join(folder, path), 'utf8');
    return [...text.matchAll(/stryMutAct_\w+\("(\d+)"\)/g)].map(([, mutant]) => [mutant, join(folder, path)]);
  });
}

function reported({ durationMs, failure, id, status }, fileName) {
  const common = { id, name: id, fileName, timeSpentMs: durationMs };
  if (status === 'passed') return { ...common, status: TestStatus.Success };
  if (status === 'skipped') return { ...common, status: TestStatus.Skipped };
  return { ...common, status: TestStatus.Failed, failureMessage: failure };
}

export const strykerPlugins = [
  declareClassPlugin(PluginKind.TestRunner, 'loading-once', LoadingOnceTestRunner),
];
