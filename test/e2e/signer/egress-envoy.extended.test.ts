/** The suite of egress-envoy.test.ts on the other versions of Envoy. */
import './egress-envoy.test.ts';
