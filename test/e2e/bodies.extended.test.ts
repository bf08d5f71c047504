/** The suite of bodies.test.ts on the other versions of Envoy. */
import './bodies.test.ts';
