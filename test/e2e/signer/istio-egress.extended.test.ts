/** The suite of istio-egress.test.ts on the other versions of Envoy. */
import './istio-egress.test.ts';
