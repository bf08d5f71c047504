/** The program: its commands, and how whatever goes wrong in them comes out. */
import { CommanderError } from 'commander';
import { registerAgent } from './commands/agent.ts';
import { registerBundle } from './commands/bundle.ts';
import { registerControl } from './commands/control.ts';
import { registerCtl } from './commands/ctl.ts';
import { registerEnroll } from './commands/enroll.ts';
import { registerEnvoy } from './commands/envoy.ts';
import { registerExplain } from './commands/explain.ts';
import { registerKeygen } from './commands/keygen.ts';
import { registerRequest } from './commands/request.ts';
import { registerSign } from './commands/sign.ts';
import { registerStatus } from './commands/status.ts';
import { registerVerifier } from './commands/verifier.ts';
import { type CliContext, ProofgateCommand } from './define-command.ts';
import { type CliError, EXIT_CODES, toCliError, usageError } from './errors.ts';
import { type Environment, OUTPUT_FORMATS, type OutputFormat } from './output.ts';

/**
 * Runs one command line; never throws.
 * @param args without node and script
 * @returns the process's exit code
 */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  context.output.useFormat(requestedFormat(args, context.env));
  try {
    await buildProgram(context).parseAsync([...args], { from: 'user' });
    return context.output.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT_CODES.done;
    const shown = error instanceof CommanderError ? toUsageError(error) : toCliError(error);
    context.output.error(shown);
    return shown.exitCode;
  }
}

/** Commander's own view of every command: what a line must look like to be taken. */
export function buildProgram(context: CliContext): ProofgateCommand {
  const program = new ProofgateCommand('proofgate')
    .description(
      'Proof-bound request verification: keys, signed requests, bundles, the verifier, and Control',
    )
    .version(context.version, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.output.stdout.write(text),
      // Errors are shown once, by runCli.
      writeErr: () => {},
      outputError: () => {},
    });
  registerKeygen(program, context);
  registerEnroll(program, context);
  registerAgent(program, context);
  registerStatus(program, context);
  registerSign(program, context);
  registerRequest(program, context);
  registerBundle(program, context);
  registerVerifier(program, context);
  registerEnvoy(program, context);
  registerExplain(program, context);
  registerControl(program, context);
  registerCtl(program, context);
  return program;
}

/** Commander's own errors, as ours. */
const CODES: { readonly [code: string]: string } = {
  'commander.unknownOption': 'unknown_flag',
  'commander.unknownCommand': 'unknown_command',
  'commander.missingArgument': 'argument_missing',
  'commander.excessArguments': 'argument_unexpected',
  'commander.optionMissingArgument': 'flag_value_missing',
};

function toUsageError(error: CommanderError): CliError {
  if (error.code === 'commander.help') {
    return usageError('command_missing', 'name a command; --help lists them');
  }
  return usageError(CODES[error.code] ?? 'usage', error.message.replace(/^error: /, ''));
}

/** For errors that come before settings are read. */
function requestedFormat(args: readonly string[], env: Environment): OutputFormat {
  const flag = args.lastIndexOf('--output');
  const joined = args.findLast((arg) => arg.startsWith('--output='))?.slice('--output='.length);
  const requested = joined ?? (flag === -1 ? env.PROOFGATE_OUTPUT : args[flag + 1]);
  return OUTPUT_FORMATS.find((format) => format === requested) ?? 'text';
}
