/** Every test file is in exactly one lane, `make test` or `make test-extended`, and few failures get a second try in CI. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkoutPath } from './support/harness/checkout.ts';

interface FailedFile {
  readonly path: string;
  readonly timedOut: boolean;
}

/** The files that a target of the Makefile would have Jest run. */
function filesOf(target: string): readonly string[] {
  const recipe = execFileSync('make', ['--silent', '--dry-run', target], {
    cwd: checkoutPath(),
    encoding: 'utf8',
  });
  const [command = ''] = recipe.split('\n').filter((line) => / jest --( |$)/.test(line));
  const listed = execFileSync('bash', ['-c', `${command} --listTests --json`], {
    cwd: checkoutPath(),
    encoding: 'utf8',
  });
  const paths: readonly string[] = JSON.parse(listed);
  return paths.map((path) => path.slice(checkoutPath().length + 1));
}

const fast = filesOf('test');

it('has every test file in one lane', () => {
  const extended = filesOf('test-extended');
  const there = readdirSync(checkoutPath('test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`);
  expect(fast.filter((path) => path.endsWith('.extended.test.ts'))).toEqual([]);
  expect([...fast, ...extended].toSorted()).toEqual(there.toSorted());
});

it('has the quick tests among the fast ones', () => {
  expect(filesOf('quick').filter((path) => !fast.includes(path))).toEqual([]);
});

describe('a second try', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'proofgate-second-try-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** What `.ci/run` does with the results of a lane; `path` has failed. */
  function triedAgain(path: string, { timedOut = true, earlier = [] as readonly string[] } = {}) {
    const file = join(folder, 'results');
    const run = { passed: 1, failed: 1, skipped: 0, failures: [{ path, failed: 1, timedOut }] };
    writeFileSync(file, `${JSON.stringify({ secondTries: earlier })}\n${JSON.stringify(run)}\n`);
    const script = checkoutPath('scripts', 'jest', 'results.mjs');
    const options = { cwd: checkoutPath(), encoding: 'utf8' } as const;
    const { status } = spawnSync(process.execPath, [script, 'again', file], options);
    const total = execFileSync(process.execPath, [script, 'total', file], options);
    return { status, total, lines: readFileSync(file, 'utf8').trimEnd().split('\n').length };
  }

  const refused = { status: 1, total: '1 passed, 1 failed, 0 skipped\n', lines: 2 };

  it('is made of a file that failed by a wait alone, and the total names it', () => {
    const path = 'test/process/http-service/nearest-name.test.ts';
    expect(triedAgain(path)).toEqual({
      status: 0,
      total: `2 passed, 0 failed, 0 skipped\n1 at the second try: ${path}\n`,
      lines: 3,
    });
  });

  it('is not made of a failed assertion', () => {
    expect(triedAgain('test/process/http-service/nearest-name.test.ts', { timedOut: false })).toEqual(
      refused,
    );
  });

  it('is not made of more than three files a run', () => {
    const total = `${refused.total}3 at the second try: a b c\n`;
    expect(triedAgain('test/process/a.test.ts', { earlier: ['a', 'b', 'c'] })).toEqual({ ...refused, total });
  });

  it.each([
    'test/verifier/decision/decide.test.ts',
    'test/verifier/replay/redis.test.ts',
    'test/conformance/envoy-grpc.test.ts',
    'test/wire-fuzz/envoy.extended.test.ts',
    'test/fuzz/findings.test.ts',
    'test/e2e/outcomes.test.ts',
    'test/e2e/fail-closed/sidecar.extended.test.ts',
  ])('is not made of %s', (path) => {
    expect(triedAgain(path)).toEqual(refused);
  });

  it('is not made where the lane failed before its tests', () => {
    const file = join(folder, 'results');
    writeFileSync(file, '{"failed":1}\n');
    const script = checkoutPath('scripts', 'jest', 'results.mjs');
    expect(spawnSync(process.execPath, [script, 'again', file]).status).toBe(1);
  });
});

describe('the reporter', () => {
  let folder = '';
  beforeAll(() => {
    mkdirSync(checkoutPath('.build'), { recursive: true });
    folder = mkdtempSync(checkoutPath('.build', 'lanes-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const WAIT = `import { waitFor } from '${checkoutPath('test', 'support', 'wait.ts')}';`;

  /** Runs a file for each body of a test. @returns which of the failed ones only waited, by file */
  function runOf(bodies: readonly string[], env: NodeJS.ProcessEnv = {}) {
    for (const [index, body] of bodies.entries()) {
      writeFileSync(
        join(folder, `${index}.test.ts`),
        `${WAIT}\nit('runs', async () => { ${body} }, 3_000);\n`,
      );
    }
    const results = join(folder, 'results');
    rmSync(results, { force: true });
    const config = join(folder, 'jest.config.mjs');
    const { href } = pathToFileURL(checkoutPath('jest.config.mjs'));
    const overrides =
      "rootDir: import.meta.dirname, testMatch: ['<rootDir>/*.test.ts'], modulePathIgnorePatterns: []";
    const paths = `JSON.parse(JSON.stringify(base).replaceAll('<rootDir>', '${checkoutPath()}'))`;
    writeFileSync(config, `import base from '${href}';\nexport default { ...${paths}, ${overrides} };\n`);
    const { status } = spawnSync(
      'npm',
      ['run', '--silent', 'jest', '--', '--runInBand', '--config', config],
      {
        cwd: checkoutPath(),
        env: { ...process.env, ...env, PROOFGATE_TEST_LANE: undefined, PROOFGATE_TEST_RESULTS: results },
      },
    );
    const { failures }: { readonly failures: readonly FailedFile[] } = JSON.parse(
      readFileSync(results, 'utf8'),
    );
    return {
      status,
      failures: Object.fromEntries(failures.map((file) => [basename(file.path), file.timedOut])),
    };
  }

  const PASSES = 'expect(1).toBe(1);';

  it.each([
    { budget: '60', status: 0, failures: {} },
    { budget: '0.001', status: 1, failures: { budget: false } },
  ])('judges a run by its budget of $budget s', ({ budget, status, failures }) => {
    const env = { PROOFGATE_TEST_CPU_SECONDS: budget };
    expect(runOf([PASSES, PASSES, PASSES], env)).toEqual({ status, failures });
  });

  it('tells a wait from an assertion, and from a wait with a limit of its own', () => {
    const waits = "await waitFor('nothing', () => undefined);";
    const waitsBriefly = "await waitFor('nothing', () => undefined, 10);";
    expect(runOf([waits, 'expect(1).toBe(2);', waitsBriefly])).toEqual({
      status: 1,
      failures: { '0.test.ts': true, '1.test.ts': false, '2.test.ts': false },
    });
  });
});
