/** The suite of facts-answers.test.ts on Traefik and the other versions of Envoy. */
import './facts-answers.test.ts';
