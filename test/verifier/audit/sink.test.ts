import { describe, expect, it } from '@jest/globals';
import type { AuditEvent } from '../../../src/process/telemetry/audit-event.ts';
import {
  type AuditMode,
  failureCode,
  type OperatedAuditSink,
  shipping,
} from '../../../src/verifier/audit/sink.ts';
import { numberedEvent } from './trail.ts';

/** Takes what it is given, or nothing. */
class KeepingSink implements OperatedAuditSink {
  readonly ids: string[] = [];
  readonly queuedBytes: number;
  reopened = 0;
  isClosed = false;
  readonly #takes: boolean;

  constructor(takes: boolean, queuedBytes = 0) {
    this.#takes = takes;
    this.queuedBytes = queuedBytes;
  }

  record(event: AuditEvent): boolean {
    if (this.#takes && 'decision_id' in event) this.ids.push(event.decision_id);
    return this.#takes;
  }

  reopen(): void {
    this.reopened += 1;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

const open = (takes: boolean, shipperTakes: boolean, mode: AuditMode) => {
  const [recorder, shipper] = [new KeepingSink(takes, 3), new KeepingSink(shipperTakes, 4)];
  return { recorder, shipper, sink: shipping(recorder, shipper, mode) };
};

describe.each<AuditMode>(['required', 'best_effort'])('%s, with a collector beside it', (mode) => {
  it('hands on what is recorded', () => {
    const { recorder, shipper, sink } = open(true, true, mode);
    expect(sink.record(numberedEvent(1))).toBe(true);
    expect([recorder.ids, shipper.ids]).toEqual([['1'], ['1']]);
  });

  it('has recorded an event that the collector does not take', () => {
    const { recorder, sink } = open(true, false, mode);
    expect(sink.record(numberedEvent(1))).toBe(true);
    expect(recorder.ids).toEqual(['1']);
  });

  it('has not recorded one that the collector alone takes', () => {
    const { sink } = open(false, true, mode);
    expect(sink.record(numberedEvent(1))).toBe(false);
  });

  it('reopens, counts and closes both', async () => {
    const { recorder, shipper, sink } = open(true, true, mode);
    sink.reopen();
    expect([recorder.reopened, shipper.reopened, sink.queuedBytes]).toEqual([1, 1, 7]);
    await sink.close();
    expect([recorder.isClosed, shipper.isClosed]).toEqual([true, true]);
  });
});

it('a collector gets what is not recorded only when no request is refused for it', () => {
  const handed = (mode: AuditMode) => {
    const { shipper, sink } = open(false, true, mode);
    sink.record(numberedEvent(1));
    return shipper.ids;
  };
  expect([handed('best_effort'), handed('required')]).toEqual([['1'], []]);
});

describe('the code of a failure', () => {
  it.each<[unknown, string]>([
    [Object.assign(new Error('full'), { code: 'ENOSPC' }), 'enospc'],
    [{ code: 'UND_ERR_SOCKET' }, 'und_err_socket'],
    [{ code: 'E2BIG' }, 'e2big'],
    [new Error('ENOSPC'), 'unknown'],
    [{ code: 28 }, 'unknown'],
    [{ code: 'enospc' }, 'unknown'],
    [{ code: 'ENOSPC: no space' }, 'unknown'],
    [{ code: ' ENOSPC' }, 'unknown'],
    [{ code: '' }, 'unknown'],
    [null, 'unknown'],
    [undefined, 'unknown'],
    ['ENOSPC', 'unknown'],
  ])('of %p is %s', (error, code) => {
    expect(failureCode(error)).toBe(code);
  });
});
