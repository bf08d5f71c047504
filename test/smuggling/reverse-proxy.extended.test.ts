/** The suite of reverse-proxy.test.ts before a lenient upstream. */
import './reverse-proxy.test.ts';
