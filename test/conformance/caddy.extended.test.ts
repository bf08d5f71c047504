/** The conformance suite at Caddy. */
import { CADDY } from './points/caddy.ts';
import { conformanceSuite } from './suite.ts';

conformanceSuite(CADDY);
