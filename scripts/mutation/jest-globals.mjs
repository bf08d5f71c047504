/** The exports of `@jest/globals` for tests that run outside of Jest. */
export { jestExpect as expect } from '@jest/expect';
export { afterAll, afterEach, beforeAll, beforeEach, describe, it, test } from 'jest-circus';
