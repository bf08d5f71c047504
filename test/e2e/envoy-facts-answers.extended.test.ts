/** The suite of envoy-facts-answers.test.ts on the other versions of Envoy. */
import './envoy-facts-answers.test.ts';
