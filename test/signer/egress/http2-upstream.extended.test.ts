/** The suite of http2-upstream.test.ts with a long response. */
import './http2-upstream.test.ts';
