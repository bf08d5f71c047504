/** The refusals of the conformance suite behind filler lines: `node:http` in the fast lane, all other points in the extended one. */
import { byLane } from '../support/lane.ts';
import { fillerSuite } from './filler-suite.ts';
import { NEWEST_POINTS } from './points.ts';

const isFast = ({ name }: (typeof NEWEST_POINTS)[number]) => name === 'node-http';
const points = byLane({
  fast: NEWEST_POINTS.filter(isFast),
  extended: NEWEST_POINTS.filter((one) => !isFast(one)),
});
for (const driver of points) fillerSuite(driver, { isWhole: byLane({ fast: false, extended: true }) });
