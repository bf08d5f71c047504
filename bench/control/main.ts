/**
 * `make bench-control`: how fast a decision reaches the verifiers, and what the enrollment plane costs on a large site. Each
 * part prints its figures and their bounds; the exit code is 1 when a figure crosses its bound. See docs/operate/performance.md.
 * Arguments name the parts to run. For `declarations`, `PROOFGATE_BENCH_RELEASE` is the program file of another version, and
 * `PROOFGATE_BENCH_CLIENTS` and `PROOFGATE_BENCH_ROUND_SECONDS` make it smaller.
 */
import { availableParallelism, loadavg } from 'node:os';
import {
  AT_ONCE,
  ROUND_SECONDS as DECLARATION_SECONDS,
  MOST_WAIT_MS,
  measureDeclarationsAtOnce,
  SITE_CLIENTS,
} from './declarations-at-once.ts';
import {
  ENROLLMENT_ROUNDS,
  ENROLLMENT_TARGETS,
  type EnrollmentFigures,
  FEW_KEYS,
  MANY_KEYS,
  measureEnrollments,
  PER_SECOND,
  ROUND_SECONDS,
  type SiteFigures,
} from './enrollments.ts';
import { measureFirstPage, PAGE_ROUNDS } from './first-page.ts';
import { DECLARED_CLIENTS, measureLargeDeclaration } from './large-declaration.ts';
import { CHANGES, MANY_TARGETS, MOST_SPREAD_MS, measureManyTargets } from './many-targets.ts';
import { CONSOLE_ROUNDS, CONSOLES, ENROLLED_PER_SECOND, measureOpenConsoles } from './open-consoles.ts';
import { MOST_PREVIEW_RATIO, measurePreview, PREVIEW_ROUNDS, PREVIEWED_EVENTS } from './preview.ts';
import { MOST_REVOCATION_MS, measureRevocation, REVOCATION_RUNS } from './revocation.ts';

/** Most that many keys may cost, as a multiple of what few do. */
const MOST_RATIO = 1.5;

async function main(): Promise<void> {
  console.log(`Node ${process.versions.node}, ${availableParallelism()} cores`);
  await part(
    'revocation',
    `Revocation, ${REVOCATION_RUNS} runs: from the revoke call's answer to the first denial`,
    async () => reportTimes(await measureRevocation(), MOST_REVOCATION_MS),
  );
  await part(
    'targets',
    `${MANY_TARGETS} targets, ${CHANGES} changes: from the answer until all have acknowledged`,
    async () => reportTimes(await measureManyTargets(), MOST_SPREAD_MS),
  );
  await part(
    'enrollments',
    `${PER_SECOND} enrollments a second, ${ENROLLMENT_TARGETS} targets: ${FEW_KEYS} and ${MANY_KEYS} keys, ` +
      `${ENROLLMENT_ROUNDS} rounds of ${ROUND_SECONDS} s each`,
    async () => reportEnrollments(await measureEnrollments()),
  );
  await part(
    'consoles',
    `${CONSOLES} open consoles, ${ENROLLED_PER_SECOND} enrollments a second, ${CONSOLE_ROUNDS} rounds with and without`,
    reportConsoles,
  );
  await part(
    'first-page',
    `The console's first page beside a page with one word, ${PAGE_ROUNDS} rounds`,
    reportFirstPage,
  );
  await part(
    'preview',
    `A preview of ${PREVIEWED_EVENTS} decisions beside JSON.parse of the same lines, ${PREVIEW_ROUNDS} rounds in turn`,
    reportPreview,
  );
  await part('declaration', `A declaration of ${DECLARED_CLIENTS} clients`, reportDeclarations);
  await part(
    'declarations',
    `${AT_ONCE} declarations at once on a site of ${SITE_CLIENTS} clients, ${DECLARATION_SECONDS} s each`,
    reportDeclarationsAtOnce,
  );
}

/** Of a site's statements; each is renewed within this time. */
const STATEMENT_INTERVAL_MS = 4000;

async function reportDeclarationsAtOnce(): Promise<void> {
  const release = process.env.PROOFGATE_BENCH_RELEASE;
  for (const { database, rounds, peakRssMiB } of await measureDeclarationsAtOnce(release)) {
    console.log(`  ${database}: Control's peak RSS ${peakRssMiB.toFixed(0)} MiB`);
    for (const round of rounds) {
      const { name, answers, revocations, failedRevocations } = round;
      const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
      console.log(
        `  ${name}: answers ${JSON.stringify(answers)}; oldest statement ${seconds(round.oldestStatementMs)}; ` +
          `slowest of ${revocations} revocations ${seconds(round.slowestRevocationMs)}, ${failedRevocations} failed first`,
      );
    }
    const slowestMs = Math.max(...rounds.map((round) => round.slowestRevocationMs));
    verdict(`slowest revocation ${slowestMs.toFixed(0)} ms`, slowestMs <= MOST_WAIT_MS, `${MOST_WAIT_MS} ms`);
    const oldestMs = Math.max(...rounds.map((round) => round.oldestStatementMs));
    const most = MOST_WAIT_MS + STATEMENT_INTERVAL_MS;
    verdict(`oldest statement ${oldestMs.toFixed(0)} ms`, oldestMs <= most, `${most} ms`);
  }
}

async function reportPreview(): Promise<void> {
  const { parseUs, previewUs, ratio } = await measurePreview();
  console.log(`  preview ${previewUs.toFixed(1)} µs an event, JSON.parse ${parseUs.toFixed(1)} µs`);
  verdict(`${ratio.toFixed(2)} times`, ratio <= MOST_PREVIEW_RATIO, String(MOST_PREVIEW_RATIO));
}

async function reportDeclarations(): Promise<void> {
  for (const each of await measureLargeDeclaration()) {
    const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
    const size = `${each.fileMiB.toFixed(1)} MiB`;
    const times = `dry run ${seconds(each.comparedMs)}, applied ${seconds(each.appliedMs)}`;
    console.log(`  ${each.database}, ${size}: ${times}; Control's peak RSS ${each.rssMiB.toFixed(0)} MiB`);
  }
}

/** Most that the consoles may cost, of one core. */
const MOST_CONSOLE_SHARE = 0.02;

async function reportConsoles(): Promise<void> {
  const { without, withConsoles } = await measureOpenConsoles();
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  console.log(
    `  CPU of Control without: ${without.map(percent).join(', ')}; with: ${withConsoles.map(percent).join(', ')}`,
  );
  const extra = quantile(withConsoles, 0.5) - quantile(without, 0.5);
  verdict(`extra ${percent(extra)} of a core`, extra <= MOST_CONSOLE_SHARE, percent(MOST_CONSOLE_SHARE));
}

/** Most that the console's first page may take, as a multiple of what the page with one word does. */
const MOST_PAGE_RATIO = 3;

async function reportFirstPage(): Promise<void> {
  const { console: page, empty } = await measureFirstPage();
  const [pageMs, emptyMs] = [quantile(page, 0.5), quantile(empty, 0.5)];
  console.log(`  time to interactive: ${pageMs.toFixed(0)} ms and ${emptyMs.toFixed(0)} ms`);
  const ratio = pageMs / emptyMs;
  verdict(`${ratio.toFixed(2)} times`, ratio <= MOST_PAGE_RATIO, String(MOST_PAGE_RATIO));
}

const wanted = process.argv.slice(2);

async function part(name: string, title: string, measure: () => Promise<void>): Promise<void> {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  console.log(`\n${title}`);
  const startedMs = performance.now();
  await measure();
  const load = loadavg().map((average) => average.toFixed(1));
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(`  load averages of the machine afterwards ${load.join(', ')}; took ${seconds.toFixed(0)} s`);
}

function reportTimes(timesMs: readonly number[], mostMs: number): void {
  const slowest = Math.max(...timesMs);
  console.log(`  median ${quantile(timesMs, 0.5).toFixed(0)} ms`);
  verdict(`slowest ${slowest.toFixed(0)} ms`, slowest <= mostMs, `${mostMs} ms`);
}

function reportEnrollments({ few, many }: EnrollmentFigures): void {
  reportSite(`${FEW_KEYS} keys`, few);
  reportSite(`${MANY_KEYS} keys`, many);
  for (const [name, figure] of Object.entries(COMPARED)) {
    const ratio = figure(many) / figure(few);
    verdict(`${name} ${ratio.toFixed(2)} times`, ratio <= MOST_RATIO, String(MOST_RATIO));
  }
}

function reportSite(name: string, site: SiteFigures): void {
  const shares = site.rounds.map(({ cpuShare }) => (cpuShare * 100).toFixed(1));
  const times = timesOf(site);
  const { CPU: cpu, bytes } = COMPARED;
  console.log(`  ${name}`);
  console.log(
    `    CPU of Control ${(cpu(site) * 100).toFixed(1)} % of a core (rounds: ${shares.join(', ')})`,
  );
  console.log(`    to each target ${bytes(site).toFixed(0)} bytes an enrollment`);
  console.log(
    `    acknowledged by all after ${quantile(times, 0.5).toFixed(0)} ms (99 % after ${quantile(times, 0.99).toFixed(0)} ms)`,
  );
  console.log(
    `    a changed route: acknowledged by all after ${site.wholeMs.toFixed(0)} ms, ${site.wholeCpuMs.toFixed(0)} ms of CPU`,
  );
}

/** Medians that must not grow with the number of keys. */
const COMPARED = {
  CPU: ({ rounds }: SiteFigures) =>
    quantile(
      rounds.map(({ cpuShare }) => cpuShare),
      0.5,
    ),
  bytes: ({ rounds }: SiteFigures) =>
    quantile(
      rounds.map(({ bytesPerEnrollment }) => bytesPerEnrollment),
      0.5,
    ),
  'time to acknowledgement': (site: SiteFigures) => quantile(timesOf(site), 0.5),
};

function timesOf({ rounds }: SiteFigures): readonly number[] {
  return rounds.flatMap(({ acknowledgedMs }) => acknowledgedMs);
}

/** Missing figures are no pass. */
function verdict(figure: string, isWithin: boolean, most: string): void {
  console.log(`  ${figure} (at most ${most}): ${isWithin ? 'ok' : 'TOO MUCH'}`);
  if (!isWithin) process.exitCode = 1;
}

/** The middle of the two in the middle, for a half of an even number. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below === undefined || above === undefined ? Number.NaN : below + (above - below) * (place % 1);
}

await main();
