/** The suite of middleware.test.ts in the other frameworks. */
import './middleware.test.ts';
