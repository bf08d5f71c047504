/** Generated requests at the middleware: what the application's handler receives is what was verified. */
import { EXPRESS } from '../conformance/points/express.ts';
import { FASTIFY } from '../conformance/points/fastify.ts';
import { HONO } from '../conformance/points/hono.ts';
import { NODE_HTTP } from '../conformance/points/node-http.ts';
import { wireFuzz } from './suite.ts';

for (const driver of [EXPRESS, FASTIFY, HONO, NODE_HTTP]) wireFuzz(driver);
