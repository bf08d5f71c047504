/** Tests when SIGHUP reopens the audit file: `process.emit` runs the handler as the signal does. */
import { afterEach, expect, it } from '@jest/globals';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { reopenOnHangUp } from '../../../src/verifier/assembly/hang-up.ts';

const others = process.listeners('SIGHUP');
afterEach(() => {
  for (const listener of process.listeners('SIGHUP')) {
    if (!others.includes(listener)) process.off('SIGHUP', listener);
  }
});

function newHangUp() {
  let reopened = 0;
  const hangUp = reopenOnHangUp(createLogger('silent'));
  return {
    start: () =>
      hangUp.start(() => {
        reopened += 1;
      }),
    stop: hangUp.stop,
    signal: () => process.emit('SIGHUP', 'SIGHUP'),
    reopened: () => reopened,
  };
}

it('reopens at each signal', () => {
  const { reopened, signal, start } = newHangUp();
  start();
  expect(reopened()).toBe(0);
  signal();
  signal();
  expect(reopened()).toBe(2);
});

it('reopens once after the start for signals during it', () => {
  const { reopened, signal, start } = newHangUp();
  signal();
  signal();
  expect(reopened()).toBe(0);
  start();
  expect(reopened()).toBe(1);
});

it('ignores a signal during shutdown, which does not end the process either', () => {
  const { reopened, signal, start, stop } = newHangUp();
  start();
  stop();
  expect(signal()).toBe(true);
  expect(reopened()).toBe(0);
});
