/** The conformance suite at the middleware: Fastify in the fast lane, the other frameworks in the extended one. */
import { byLane } from '../support/lane.ts';
import { EXPRESS } from '../support/points/express.ts';
import { FASTIFY } from '../support/points/fastify.ts';
import { HONO } from '../support/points/hono.ts';
import { NODE_HTTP } from '../support/points/node-http.ts';
import { conformanceSuite } from './suite.ts';

const drivers = byLane({ fast: [FASTIFY], extended: [EXPRESS, HONO, NODE_HTTP] });
for (const driver of drivers) conformanceSuite(driver);
