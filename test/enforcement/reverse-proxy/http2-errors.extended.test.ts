/** The long half of http2-errors.test.ts. */
import './http2-errors.test.ts';
