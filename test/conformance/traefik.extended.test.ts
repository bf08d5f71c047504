/** The conformance suite at Traefik. */
import { TRAEFIK } from './points/traefik.ts';
import { conformanceSuite } from './suite.ts';

conformanceSuite(TRAEFIK);
