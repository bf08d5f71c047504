/** Entry point of the process: `bin/proofgate` imports this file, and `node dist/cli/main.js` runs it. */
import { EXIT_CODES, systemErrorCode, toCliError, usageError } from '../process/program/errors.ts';
import { isTerminal, Output } from '../process/program/output.ts';
import { packageVersion } from '../process/program/version.ts';
import { runCli } from './program.ts';

// With this variable libraries log what they send, including passwords.
delete process.env.DEBUG;

const output = new Output(process.stdout, process.stderr, process.env);

process.on('uncaughtException', (error) => {
  output.error(toCliError(error));
  process.exit(EXIT_CODES.internal);
});

process.stdout.on('error', (error) => {
  // The reader may close the pipe early, as `head` does.
  if (systemErrorCode(error) === 'EPIPE') process.exit(EXIT_CODES.done);
  output.error(
    usageError('output_not_written', `standard output cannot be written (${systemErrorCode(error)})`),
  );
  process.exit(EXIT_CODES.usage);
});

const { stdin, stderr } = process;
const terminal = isTerminal(stdin) && isTerminal(stderr) ? { input: stdin, output: stderr } : undefined;

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  output,
  version: packageVersion(),
  terminal,
});
