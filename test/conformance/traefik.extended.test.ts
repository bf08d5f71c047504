/** The conformance suite at Traefik. */
import { TRAEFIK } from '../support/points/traefik.ts';
import { conformanceSuite } from './suite.ts';

conformanceSuite(TRAEFIK);
