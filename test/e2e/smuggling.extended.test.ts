/** The suite of smuggling.test.ts on the other versions of Envoy. */
import './smuggling.test.ts';
