/**
 * Jest's environment for Node. It tells the waits of a test or hook when to give up (test/support/wait.ts), gives every test more
 * time on a slow or busy machine, and records what each file costs.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { TestEnvironment } from 'jest-environment-node';
import { slowness } from './slowness.mjs';

/** Time by which a wait ends before Jest's limit, because only its error tells which condition failed. */
const REPORT_MS = 2_000;
const TICKS_OF_SECOND = 100;

export default class extends TestEnvironment {
  #path;
  /** A hook runs more than once. */
  #extended = new WeakSet();
  #startSeconds = cpuSeconds();
  #slowness = slowness();

  constructor(config, context) {
    super(config, context);
    this.#path = context.testPath;
    this.global.machineSlowness = this.#slowness.waited;
  }

  handleTestEvent({ name, hook, test }, { testTimeout }) {
    if (name !== 'hook_start' && name !== 'test_fn_start') return;
    const timed = hook ?? test;
    if (!this.#extended.has(timed)) {
      this.#extended.add(timed);
      // Jest reads it after this event.
      timed.timeout = (timed.timeout || testTimeout) * this.#slowness.waited;
    }
    this.global.waitsEndAtMs = performance.now() + timed.timeout - REPORT_MS;
  }

  async teardown() {
    await super.teardown();
    const file = process.env.PROOFGATE_TEST_COSTS;
    if (file === undefined) return;
    const cpu = cpuSeconds() - this.#startSeconds;
    appendFileSync(
      file,
      `${JSON.stringify({ file: relative('.', this.#path), cpu, slowness: this.#slowness.worked })}\n`,
    );
  }
}

/** Processor time of this process and of its reaped children (proc_pid_stat(5), fields 14 to 17). */
function cpuSeconds() {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const ticks = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
  return ticks.reduce((sum, count) => sum + Number(count), 0) / TICKS_OF_SECOND;
}
