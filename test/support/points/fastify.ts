/** The middleware in Fastify 5. */
import { middlewarePoint } from './middleware.ts';

export const FASTIFY = middlewarePoint('fastify', 'fastify');
