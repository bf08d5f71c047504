/** The suite of header-count.test.ts on the other versions of Envoy. */
import './header-count.test.ts';
