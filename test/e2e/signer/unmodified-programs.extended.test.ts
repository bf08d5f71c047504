/** The suite of unmodified-programs.test.ts on the other versions of Envoy. */
import './unmodified-programs.test.ts';
