/** The smuggling corpus at `proofgate proxy`. */

import { byLane } from '../support/lane.ts';
import { REVERSE_PROXY } from '../support/points/reverse-proxy.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(REVERSE_PROXY, byLane({ fast: ['strict'], extended: ['lenient'] }));
