/** The smuggling corpus at `proofgate proxy`. */
import { REVERSE_PROXY } from '../conformance/points/reverse-proxy.ts';
import { byLane } from '../lane.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(REVERSE_PROXY, byLane({ fast: ['strict'], extended: ['lenient'] }));
