/** Generated requests at nginx. */
import { NGINX } from '../support/points/nginx.ts';
import { wireFuzz } from './suite.ts';

wireFuzz(NGINX);
