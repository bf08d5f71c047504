/** The conformance suite at Caddy. */
import { CADDY } from '../support/points/caddy.ts';
import { conformanceSuite } from './suite.ts';

conformanceSuite(CADDY);
