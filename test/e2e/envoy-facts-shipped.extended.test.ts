/** The suite of envoy-facts-shipped.test.ts on the other versions of Envoy. */
import './envoy-facts-shipped.test.ts';
