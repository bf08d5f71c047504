/** The suite of freshness.test.ts on the other versions of Envoy. */
import './freshness.test.ts';
