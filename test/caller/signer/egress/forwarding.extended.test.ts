/** The suite of forwarding.test.ts with more requests at a time. */
import './forwarding.test.ts';
