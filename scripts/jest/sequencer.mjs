/** Jest's order of test files, with the longest first: begun last, one would leave a processor idle for minutes. */
import Sequencer from '@jest/test-sequencer';

const LONGEST = [
  'test/docs/sessions/documents',
  'test/release/release',
  'test/image/image',
  'test/cli/transcripts',
  'test/compatibility/upgrade',
  'test/wire-fuzz/',
  'test/lanes',
];

export default class extends Sequencer {
  sort(tests) {
    const isLong = ({ path }) => LONGEST.some((part) => path.includes(part));
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
