/** The suite of forwarded-proto.test.ts on the other versions of Envoy. */
import './forwarded-proto.test.ts';
