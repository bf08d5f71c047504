/** Jest's environment for Node, which also tells the waits of a test or hook when to give up (test/support/wait.ts). */
import { TestEnvironment } from 'jest-environment-node';

/** So much earlier than Jest, a wait gives up: only its error says what did not happen. */
const REPORT_MS = 2_000;

export default class extends TestEnvironment {
  handleTestEvent({ name, hook, test }, { testTimeout }) {
    if (name !== 'hook_start' && name !== 'test_fn_start') return;
    const timeoutMs = (hook ?? test).timeout || testTimeout;
    this.global.waitsEndAtMs = performance.now() + timeoutMs - REPORT_MS;
  }
}
