/** The smuggling corpus at nginx. */
import { NGINX } from '../support/points/nginx.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(NGINX, ['strict']);
