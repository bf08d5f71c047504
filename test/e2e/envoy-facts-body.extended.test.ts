/** The suite of envoy-facts-body.test.ts on the other versions of Envoy. */
import './envoy-facts-body.test.ts';
