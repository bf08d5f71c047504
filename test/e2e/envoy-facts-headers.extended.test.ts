/** The suite of envoy-facts-headers.test.ts on the other versions of Envoy. */
import './envoy-facts-headers.test.ts';
