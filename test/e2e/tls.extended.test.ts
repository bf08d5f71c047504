/** The suite of tls.test.ts on the other versions of Envoy. */
import './tls.test.ts';
