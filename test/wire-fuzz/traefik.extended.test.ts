/** Generated requests at traefik. */
import { TRAEFIK } from '../support/points/traefik.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(TRAEFIK);
