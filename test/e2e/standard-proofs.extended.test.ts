/** The suite of standard-proofs.test.ts at Traefik and the other versions of Envoy. */
import './standard-proofs.test.ts';
