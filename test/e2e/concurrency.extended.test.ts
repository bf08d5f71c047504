/** The suite of concurrency.test.ts on all versions of Envoy at once. */
import './concurrency.test.ts';
