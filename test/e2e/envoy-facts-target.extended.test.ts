/** The suite of envoy-facts-target.test.ts on the other versions of Envoy. */
import './envoy-facts-target.test.ts';
