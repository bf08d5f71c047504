/** The suite of facts-request.test.ts on Traefik and the other versions of Envoy. */
import './facts-request.test.ts';
