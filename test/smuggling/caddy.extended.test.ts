/** The smuggling corpus at Caddy. */
import { CADDY } from '../support/points/caddy.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(CADDY, ['strict']);
