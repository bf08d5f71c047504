/** One proof, one delivery at `proofgate proxy`. */
import { REVERSE_PROXY } from '../../support/points/reverse-proxy.ts';
import { oneDeliverySuite } from './suite.ts';

oneDeliverySuite(REVERSE_PROXY, { silenceMs: 3_000 });
