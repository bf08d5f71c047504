/** The suite of external-auth.test.ts on the other versions of Envoy. */
import './external-auth.test.ts';
