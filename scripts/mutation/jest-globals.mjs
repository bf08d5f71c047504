/** The exports of `@jest/globals` for tests that run outside of Jest. */
import { ModernFakeTimers } from '@jest/fake-timers';

export { jestExpect as expect } from '@jest/expect';
export { afterAll, afterEach, beforeAll, beforeEach, describe, it, test } from 'jest-circus';

const timers = new ModernFakeTimers({ config: { rootDir: '.', fakeTimers: {} }, global: globalThis });

/** The members of `jest` that tests of the mutated folders use. */
export const jest = {
  useFakeTimers: (options) => timers.useFakeTimers(options),
  useRealTimers: () => timers.useRealTimers(),
  advanceTimersByTime: (ms) => timers.advanceTimersByTime(ms),
  setSystemTime: (now) => timers.setSystemTime(now),
};
