/** The conformance suite at nginx. */
import { NGINX } from '../support/points/nginx.ts';
import { conformanceSuite } from './suite.ts';

conformanceSuite(NGINX);
