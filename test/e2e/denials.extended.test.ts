/** The suite of denials.test.ts on the other versions of Envoy. */
import './denials.test.ts';
