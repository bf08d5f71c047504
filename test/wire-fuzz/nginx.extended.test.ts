/** Generated requests at nginx. */
import { NGINX } from '../conformance/points/nginx.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(NGINX);
