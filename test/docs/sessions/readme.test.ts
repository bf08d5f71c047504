/** What README says to paste, pasted: both ways to a request that is allowed, and `make demo`. */
import { describeSession } from './session-suite.ts';

describeSession('make');
describeSession('with-control');
describeSession('without-control');
describeSession('demo');
