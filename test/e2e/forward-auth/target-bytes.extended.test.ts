/** The same at Traefik and the other Envoys. */
import './target-bytes.test.ts';
