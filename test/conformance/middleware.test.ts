/** The conformance suite at the middleware: Fastify in the fast lane, the other frameworks in the extended one. */
import { byLane } from '../lane.ts';
import { EXPRESS } from './points/express.ts';
import { FASTIFY } from './points/fastify.ts';
import { HONO } from './points/hono.ts';
import { NODE_HTTP } from './points/node-http.ts';
import { conformanceSuite } from './suite.ts';

const drivers = byLane({ fast: [FASTIFY], extended: [EXPRESS, HONO, NODE_HTTP] });
for (const driver of drivers) conformanceSuite(driver);
