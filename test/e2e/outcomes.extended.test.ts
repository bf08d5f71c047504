/** The suite of outcomes.test.ts on the other versions of Envoy. */
import './outcomes.test.ts';
