/** Runs the commands of README and of both tutorials, block by block, and `make demo`. */
import { describeSession } from './session-suite.ts';

describeSession('make');
describeSession('with-control');
describeSession('without-control');
describeSession('demo');
