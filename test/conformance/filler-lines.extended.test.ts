/** The suite of filler-lines.test.ts at the other points. */
import './filler-lines.test.ts';
