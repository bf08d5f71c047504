/** The conformance suite at `proofgate proxy`. */
import { REVERSE_PROXY } from '../support/points/reverse-proxy.ts';
import { conformanceSuite } from './suite.ts';

conformanceSuite(REVERSE_PROXY);
