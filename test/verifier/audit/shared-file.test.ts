/** Several processes append to one audit file: what one of them leaves torn spoils no line of another. */
import { appendFileSync, readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createJsonLinesSink } from '../../../src/verifier/audit/json-lines.ts';
import type { AuditMode } from '../../../src/verifier/audit/sink.ts';
import { waitUntil } from '../../support/wait.ts';
import { idsOfShared, numberedEvent, RecordingObserver, TrailFolder, upTo } from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

function open(destination: string, mode: AuditMode) {
  return createJsonLinesSink({ destination, mode, observer: new RecordingObserver(), isShared: true });
}

const linesOf = (file: string) => readFileSync(file, 'utf8').split('\n').filter(Boolean);

describe.each<AuditMode>(['required', 'best_effort'])('%s', (mode) => {
  it('a line that another process did not end is ended first', async () => {
    const file = folder.newPath();
    const [first, second] = [open(file, mode), open(file, mode)];
    const torn = '{"event":"proofgate.decision","ti';
    for (let round = 0; round < 3; round++) {
      first.record(numberedEvent(2 * round));
      await waitUntil(() => linesOf(file).length === 3 * round + 1);
      // A process killed within a write, or a full disk, leaves this.
      appendFileSync(file, torn);
      second.record(numberedEvent(2 * round + 1));
      await waitUntil(() => linesOf(file).length === 3 * round + 3);
    }
    await Promise.all([first.close(), second.close()]);
    const whole = linesOf(file).filter((line) => line !== torn);
    expect(linesOf(file)).toHaveLength(9);
    expect(whole.map((line) => JSON.parse(line).decision_id)).toEqual(
      [0, 1, 2, 3, 4, 5].map((number) => numberedEvent(number).decision_id),
    );
  });

  it('adds nothing where all lines are whole', async () => {
    const file = folder.newPath();
    const sinks = [open(file, mode), open(file, mode), open(file, mode)];
    // One after the other: a process that starts while another is writing may take its line for a torn one.
    for (let number = 0; number < 9; number++) {
      sinks[number % 3]?.record(numberedEvent(number));
      await waitUntil(() => linesOf(file).length === number + 1);
    }
    await Promise.all(sinks.map((sink) => sink.close()));
    expect(readFileSync(file, 'utf8')).not.toMatch(/^\n|\n\n/);
  });

  it('keeps every line whole, however many write at once', async () => {
    const file = folder.newPath();
    const sinks = [open(file, mode), open(file, mode), open(file, mode)];
    for (let number = 0; number < 300; number++) sinks[number % 3]?.record(numberedEvent(number));
    await Promise.all(sinks.map((sink) => sink.close()));
    expect([...idsOfShared(file)].sort((a, b) => a - b)).toEqual(upTo(300));
  });
});
