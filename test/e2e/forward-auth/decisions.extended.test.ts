/** The suite of decisions.test.ts on the other versions of Envoy. */
import './decisions.test.ts';
