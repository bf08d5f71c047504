/**
 * Measures 30 enrollments a second on a site with few keys and on one with many: CPU of Control, bytes to each target, time
 * until every target has acknowledged the key. Rounds alternate between the two sites, each with its own Control, so that other
 * load on the machine affects both alike.
 */
import { SteadyEnrollments } from './enroll-steadily.ts';
import { MeasuredSite } from './measured-site.ts';

export const PER_SECOND = 30;
export const FEW_KEYS = 1000;
export const MANY_KEYS = 100_000;
export const ENROLLMENT_TARGETS = 50;
export const ENROLLMENT_ROUNDS = 4;
export const ROUND_SECONDS = 12;
const WARM_UP_SECONDS = 5;

/** Figures of one round. */
interface EnrollmentRound {
  /** Share of one core. */
  readonly cpuShare: number;
  readonly bytesPerEnrollment: number;
  /** From each submission's answer until all targets had acknowledged its key. */
  readonly acknowledgedMs: readonly number[];
}

export interface SiteFigures {
  readonly rounds: readonly EnrollmentRound[];
  /** A changed route, which makes a whole bundle: Control's CPU, and from the answer until all targets acknowledged it. */
  readonly wholeCpuMs: number;
  readonly wholeMs: number;
}

export interface EnrollmentFigures {
  readonly few: SiteFigures;
  readonly many: SiteFigures;
}

export async function measureEnrollments(): Promise<EnrollmentFigures> {
  const few = await MeasuredSite.open({ keys: FEW_KEYS, targets: ENROLLMENT_TARGETS });
  try {
    const many = await MeasuredSite.open({ keys: MANY_KEYS, targets: ENROLLMENT_TARGETS });
    try {
      return await compare(few, many);
    } finally {
      await many.close();
    }
  } finally {
    await few.close();
  }
}

async function compare(few: MeasuredSite, many: MeasuredSite): Promise<EnrollmentFigures> {
  const rounds = new Map<MeasuredSite, EnrollmentRound[]>([
    [few, []],
    [many, []],
  ]);
  for (const site of [few, many]) await runRound(site, WARM_UP_SECONDS);
  for (let round = 0; round < ENROLLMENT_ROUNDS; round++) {
    // Neither is always the first.
    for (const site of round % 2 === 0 ? [few, many] : [many, few]) {
      rounds.get(site)?.push(await runRound(site, ROUND_SECONDS));
    }
  }
  return {
    few: { rounds: rounds.get(few) ?? [], ...(await measureWhole(few)) },
    many: { rounds: rounds.get(many) ?? [], ...(await measureWhole(many)) },
  };
}

async function runRound(site: MeasuredSite, seconds: number): Promise<EnrollmentRound> {
  const count = PER_SECOND * seconds;
  const enrollments = new SteadyEnrollments(site, count);
  const { targets } = site;
  targets.takeBytesPerTarget();
  const [startedMs, startedCpuMs] = [performance.now(), site.cpuMs];
  const issued = await enrollments.run(PER_SECOND);
  const acknowledgedMs: number[] = [];
  for (const { keyId, answeredMs } of issued) {
    acknowledgedMs.push((await targets.spread.everywhereAt(keyId, 'active')) - answeredMs);
  }
  return {
    cpuShare: (site.cpuMs - startedCpuMs) / (performance.now() - startedMs),
    bytesPerEnrollment: targets.takeBytesPerTarget() / count,
    acknowledgedMs,
  };
}

async function measureWhole(site: MeasuredSite): Promise<Pick<SiteFigures, 'wholeCpuMs' | 'wholeMs'>> {
  const startedCpuMs = site.cpuMs;
  const wholeMs = await site.changeRoute();
  return { wholeCpuMs: site.cpuMs - startedCpuMs, wholeMs };
}
