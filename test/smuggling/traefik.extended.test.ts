/** The smuggling corpus at Traefik. */
import { TRAEFIK } from '../conformance/points/traefik.ts';
import { smugglingSuite } from './suite.ts';

smugglingSuite(TRAEFIK, ['strict']);
