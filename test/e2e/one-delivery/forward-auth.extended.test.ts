/** One proof, one delivery at Caddy, Traefik and nginx, with their shipped configuration. */
import { CADDY } from '../../support/points/caddy.ts';
import { NGINX } from '../../support/points/nginx.ts';
import { TRAEFIK } from '../../support/points/traefik.ts';
import { oneDeliverySuite } from './suite.ts';

// Caddy and Traefik wait for an API without a limit.
oneDeliverySuite(CADDY, { silenceMs: 3_000 });
oneDeliverySuite(TRAEFIK, { silenceMs: 3_000 });
oneDeliverySuite(NGINX, { silenceMs: 70_000, neverDelivered: ['TRACE'] });
