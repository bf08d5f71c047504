/** The suite of robustness.test.ts on all versions of Envoy at once. */
import './robustness.test.ts';
