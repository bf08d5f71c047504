/** Generated requests at the middleware: what the application's handler receives is what was verified. */
import { EXPRESS } from '../support/points/express.ts';
import { FASTIFY } from '../support/points/fastify.ts';
import { HONO } from '../support/points/hono.ts';
import { NODE_HTTP } from '../support/points/node-http.ts';
import { wireFuzz } from './suite.ts';

for (const driver of [EXPRESS, FASTIFY, HONO, NODE_HTTP]) wireFuzz(driver);
