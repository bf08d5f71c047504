/** Generated requests at `proofgate proxy`. */
import { REVERSE_PROXY } from '../support/points/reverse-proxy.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(REVERSE_PROXY);
