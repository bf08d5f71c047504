/** The middleware in Hono on `@hono/node-server`. */
import { middlewarePoint } from './middleware.ts';

export const HONO = middlewarePoint('hono', 'hono');
