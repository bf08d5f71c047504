/** Caddy with `forward_auth`. */
import { caddy } from '../proxies/caddy.ts';
import { forwardAuthPoint } from './forward-auth.ts';

export const CADDY = forwardAuthPoint({ name: 'caddy', protocols: ['HTTP/1.1', 'HTTP/2'], kind: caddy });
