/** The smuggling corpus at nginx. */
import { NGINX } from '../conformance/points/nginx.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(NGINX, ['strict']);
