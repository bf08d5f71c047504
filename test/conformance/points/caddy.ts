/** Caddy with `forward_auth`. */
import { caddy } from '../../e2e/forward-auth/proxies/caddy.ts';
import { forwardAuthPoint } from './forward-auth.ts';

export const CADDY = forwardAuthPoint({ name: 'caddy', protocols: ['HTTP/1.1', 'HTTP/2'], kind: caddy });
