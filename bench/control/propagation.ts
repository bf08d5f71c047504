/**
 * How changes come to targets. 1,000 targets on one Control: the time until all have acknowledged a change. 30 keys a
 * second on a site of 1,000 keys and on one of 100,000: CPU of Control, bytes to each target, time to acknowledgement,
 * which must not grow by more than half.
 * Usage: node propagation.js [seconds of enrollments]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Answers, Ask } from './propagation-control.ts';
import { SimulatedTargets } from './simulated-targets.ts';

const PER_SECOND = 30;
const SECONDS = Number(process.argv[2] ?? 60);
const TARGETS_OF_ENROLLMENTS = 50;
const MOST_TARGETS = 1000;
const CHANGES = 10;
const FEW_KEYS = 1000;
const MANY_KEYS = 100_000;
/** Most that many keys may cost, as a multiple of what few do. */
const MOST_RATIO = 1.5;
/** Every one of a thousand targets has acknowledged by then. */
const MOST_MS = 5000;

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const CONTROL = fileURLToPath(new URL(`./propagation-control.${extension}`, import.meta.url));

class Control {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(): Promise<Control> {
    const child = fork(CONTROL, { stdio: 'inherit' });
    await once(child, 'message');
    return new Control(child);
  }

  async ask(ask: Ask): Promise<Partial<Answers>> {
    this.#child.send(ask);
    const [answer] = (await once(this.#child, 'message')) as [Partial<Answers>];
    return answer;
  }

  async attach(count: number): Promise<SimulatedTargets> {
    const { url = '', tokens = [] } = await this.ask({ kind: 'targets', count });
    const targets = new SimulatedTargets(url, tokens);
    await this.ask({ kind: 'acknowledged' });
    return targets;
  }

  async stop(): Promise<void> {
    this.#child.send({ kind: 'stop' } satisfies Ask);
    await once(this.#child, 'exit');
  }
}

interface Figures {
  readonly cpuShare: number;
  readonly bytesPerTarget: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** A changed route's whole bundle, and a revocation while it is put together. */
  readonly wholeMs: number;
  readonly revokedMs: number;
}

async function enrollments(keys: number): Promise<Figures> {
  const control = await Control.start();
  try {
    await control.ask({ kind: 'keys', count: keys });
    const targets = await control.attach(TARGETS_OF_ENROLLMENTS);
    targets.takeBytesPerTarget();
    const { enrolled, faults } = await control.ask({
      kind: 'enroll',
      perSecond: PER_SECOND,
      seconds: SECONDS,
    });
    if (enrolled === undefined || faults !== 0) throw new Error('the enrollments did not go through');
    const bytesPerTarget = targets.takeBytesPerTarget();
    const { policy } = await control.ask({ kind: 'policy' });
    await targets.stop();
    const { wholeMs = Number.NaN, revokedMs = Number.NaN } = policy ?? {};
    return {
      cpuShare: enrolled.cpuSeconds / enrolled.wallSeconds,
      bytesPerTarget,
      medianMs: quantile(enrolled.acknowledgedMs, 0.5),
      p99Ms: quantile(enrolled.acknowledgedMs, 0.99),
      wholeMs,
      revokedMs,
    };
  } finally {
    await control.stop();
  }
}

async function thousand(): Promise<readonly number[]> {
  const control = await Control.start();
  try {
    await control.ask({ kind: 'keys', count: FEW_KEYS });
    const targets = await control.attach(MOST_TARGETS);
    const times: number[] = [];
    for (let change = 0; change < CHANGES; change++) {
      times.push((await control.ask({ kind: 'revoke' })).revokedMs ?? Number.NaN);
    }
    await targets.stop();
    return times;
  } finally {
    await control.stop();
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function print(name: string, figures: Figures): void {
  const { cpuShare, bytesPerTarget, medianMs, p99Ms, wholeMs, revokedMs } = figures;
  const cpu = `${(cpuShare * 100).toFixed(1)} % of a core`;
  const bytes = `${(bytesPerTarget / SECONDS / 1024).toFixed(1)} KiB/s to a target`;
  console.log(`${name}: ${cpu}, ${bytes}, acknowledged by all after ${medianMs} ms (p99 ${p99Ms} ms)`);
  const whole = `a changed route is published after ${wholeMs.toFixed(0)} ms`;
  console.log(`  ${whole}, a revocation meanwhile after ${revokedMs.toFixed(0)} ms`);
}

const times = await thousand();
console.log(
  `${MOST_TARGETS} targets acknowledged a change after ${quantile(times, 0.5)} ms (worst ${Math.max(...times)} ms)`,
);
const few = await enrollments(FEW_KEYS);
print(`${PER_SECOND} keys a second, ${FEW_KEYS} keys`, few);
const many = await enrollments(MANY_KEYS);
print(`${PER_SECOND} keys a second, ${MANY_KEYS} keys`, many);
const ratios = {
  cpu: many.cpuShare / few.cpuShare,
  bytes: many.bytesPerTarget / few.bytesPerTarget,
  time: many.medianMs / few.medianMs,
};
for (const [name, ratio] of Object.entries(ratios))
  console.log(`${name}: ${ratio.toFixed(2)} × (at most ${MOST_RATIO})`);
const isMissed =
  Math.max(...times) > MOST_MS || Object.values(ratios).some((ratio) => !(ratio <= MOST_RATIO));
if (isMissed) process.exitCode = 1;
