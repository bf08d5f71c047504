/** Generated requests at traefik. */
import { TRAEFIK } from '../conformance/points/traefik.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(TRAEFIK);
