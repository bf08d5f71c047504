/** Checks that the program does not start when its environment turns off Node.js certificate checks. */
import { expect, it } from '@jest/globals';
import { errorCode, runProofgate } from '../support/harness/proofgate-command.ts';

it.each([['--version'], ['verifier'], ['ctl', 'get', 'environments']])(
  'certificates_unchecked: %s',
  async (...args) => {
    const result = await runProofgate(args, { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect([result.exitCode, errorCode(result)]).toEqual([2, 'certificates_unchecked']);
  },
);
