/** Generated requests at caddy. */
import { CADDY } from '../conformance/points/caddy.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(CADDY);
