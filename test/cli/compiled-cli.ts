/** The launcher of the program as `make build` compiled it. */
import { checkoutPath } from '../e2e/harness/checkout.ts';

export const LAUNCHER = checkoutPath('bin', 'proofgate');
