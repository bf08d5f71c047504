/** The suite of facts-target.test.ts on the other versions of Envoy. */
import './facts-target.test.ts';
