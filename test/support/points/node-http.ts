/** The middleware in `node:http` without a framework. */
import { middlewarePoint } from './middleware.ts';

export const NODE_HTTP = middlewarePoint('node', 'node-http');
