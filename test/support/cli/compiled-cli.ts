/** Path of the launcher of the program that `make build` compiled. */
import { checkoutPath } from '../harness/checkout.ts';

export const LAUNCHER = checkoutPath('bin', 'proofgate');
