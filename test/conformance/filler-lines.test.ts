/** The refusals of the conformance suite behind filler lines: `node:http` in the fast lane, all other points in the extended one. */
import { byLane } from '../support/lane.ts';
import { FILLERS, fillerSuite } from './filler-suite.ts';
import { POINTS } from './points.ts';

const isFast = ({ name }: (typeof POINTS)[number]) => name === 'node-http';
const points = byLane({ fast: POINTS.filter(isFast), extended: POINTS.filter((one) => !isFast(one)) });
for (const driver of points) fillerSuite(driver, byLane({ fast: [1_100], extended: FILLERS }));
