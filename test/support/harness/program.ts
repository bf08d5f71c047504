/**
 * How tests start the program: compiled, with this process's Node.js; or from an image or a package, where
 * `PROOFGATE_TEST_NODE` and `PROOFGATE_TEST_PROGRAM` name the Node.js and the program file.
 */
import { existsSync } from 'node:fs';
import { checkoutPath } from './checkout.ts';

/** The compiled command-line program: the build's, else the tools' build. */
function proofgateMain(): string {
  const given = process.env.PROOFGATE_TEST_PROGRAM;
  // A path inside another root directory need not exist here.
  if (given !== undefined) return given;
  const candidates = [
    checkoutPath('dist', 'cli', 'main.js'),
    checkoutPath('.build', 'src', 'cli', 'main.js'),
  ];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new Error('proofgate is not built: npm run build');
  return found;
}

/**
 * What a child process is started with, for `proofgate <args>`.
 * @param release file of a released program to run in its place
 */
export function proofgateCommand(
  args: readonly string[],
  release?: string,
): {
  readonly command: string;
  readonly args: readonly string[];
} {
  if (release !== undefined) return { command: process.execPath, args: [release, ...args] };
  return { command: process.env.PROOFGATE_TEST_NODE ?? process.execPath, args: [proofgateMain(), ...args] };
}
