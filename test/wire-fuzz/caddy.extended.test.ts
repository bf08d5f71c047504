/** Generated requests at caddy. */
import { CADDY } from '../support/points/caddy.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(CADDY);
