/** The suite of generated.test.ts on the other versions of Envoy. */
import './generated.test.ts';
