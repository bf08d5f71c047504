/** The suite of attacks.test.ts on the other versions of Envoy. */
import './attacks.test.ts';
