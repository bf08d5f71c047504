/** The suite of spoofing.test.ts at Traefik and the other versions of Envoy. */
import './spoofing.test.ts';
