/** The smuggling corpus at Traefik. */
import { TRAEFIK } from '../support/points/traefik.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(TRAEFIK, ['strict']);
