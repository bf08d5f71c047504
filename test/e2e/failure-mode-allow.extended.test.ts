/** The suite of failure-mode-allow.test.ts on the other versions of Envoy. */
import './failure-mode-allow.test.ts';
