/** The command-line program: its commands and its error output. */
import { type Command, CommanderError, Help } from 'commander';
import { CliError, EXIT_CODES, usageError } from '../process/program/errors.ts';
import { type Environment, OUTPUT_FORMATS, type OutputFormat } from '../process/program/output.ts';
import { CANDIDATES_COMMAND } from './completion/shell-scripts.ts';
import { type CliContext, type CommandLineNode, ProofgateCommand } from './define/define-command.ts';

/** Commands in the order of the help. */
const COMMANDS: ReadonlyMap<string, () => Promise<CommandLineNode>> = new Map([
  ['keygen', async () => (await import('./commands/keygen-command.ts')).keygenCommand],
  ['enroll', async () => (await import('./commands/enroll-command.ts')).enrollCommand],
  ['agent', async () => (await import('./commands/agent-command.ts')).agentCommand],
  ['status', async () => (await import('./commands/status-command.ts')).statusCommand],
  ['sign', async () => (await import('./commands/sign-command.ts')).signCommand],
  ['request', async () => (await import('./commands/request-command.ts')).requestCommand],
  ['signer', async () => (await import('./commands/signer-command.ts')).signerCommand],
  ['conformance', async () => (await import('./commands/conformance-command.ts')).conformanceCommand],
  ['bundle', async () => (await import('./commands/bundle-command.ts')).bundleCommands],
  ['verifier', async () => (await import('./commands/verifier-command.ts')).verifierCommand],
  ['proxy', async () => (await import('./commands/proxy-command.ts')).proxyCommand],
  ['dev', async () => (await import('./commands/dev-command.ts')).devCommand],
  ['broker', async () => (await import('./commands/broker-command.ts')).brokerCommand],
  ['envoy', async () => (await import('./commands/envoy/envoy-lint.ts')).envoyCommands],
  ['nginx', async () => (await import('./commands/nginx/nginx-lint.ts')).nginxCommands],
  ['caddy', async () => (await import('./commands/caddy/caddy-lint.ts')).caddyCommands],
  ['traefik', async () => (await import('./commands/traefik/traefik-lint.ts')).traefikCommands],
  ['explain', async () => (await import('./commands/explain-command.ts')).explainCommand],
  ['rollout', async () => (await import('./commands/rollout-command.ts')).rolloutCommand],
  ['control', async () => (await import('./commands/control-command.ts')).controlCommand],
  ['ctl', async () => (await import('./commands/ctl-command.ts')).ctlCommands],
  ['completion', async () => (await import('./commands/completion-command.ts')).completionCommand],
]);

/**
 * Runs one command line; never throws.
 * @param args without node and script
 * @returns the process's exit code
 */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  context.output.useFormat(requestedFormat(args, context.env));
  try {
    assertCertificatesChecked(context.env);
    if (args[0] === CANDIDATES_COMMAND) return await showCandidates(args.slice(1), context);
    const program = await buildProgram(context, args[0]);
    await program.parseAsync([...args], { from: 'user' });
    return context.output.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT_CODES.done;
    const shown = error instanceof CommanderError ? toUsageError(error) : await errorToShow(error);
    context.output.error(shown);
    return shown.exitCode;
  }
}

async function showCandidates(words: readonly string[], context: CliContext): Promise<number> {
  const { candidatesFor } = await import('./completion/candidates.ts');
  const { idsFromControl } = await import('./completion/control-ids.ts');
  const program = await buildProgram(context, words.length > 1 ? words[0] : undefined);
  const candidates = await candidatesFor(words, program, idsFromControl(context.env));
  context.output.result(candidates, { candidates });
  return EXIT_CODES.done;
}

async function errorToShow(error: unknown): Promise<CliError> {
  if (error instanceof CliError) return error;
  return (await import('./errors/library-errors.ts')).fromLibraryError(error);
}

/** With it Node.js accepts any certificate, also of databases and collectors. @throws CliError `certificates_unchecked` */
function assertCertificatesChecked(env: Environment): void {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    throw usageError(
      'certificates_unchecked',
      'NODE_TLS_REJECT_UNAUTHORIZED=0 switches every check of certificates off: unset it, and name a private CA by the flag for it',
    );
  }
}

/**
 * Builds the commander program. For a command line that begins with a command's name only that command is built: otherwise a
 * verifier would keep all of them in memory.
 * @param first first argument; if it names no command, all commands are built
 */
export async function buildProgram(context: CliContext, first?: string): Promise<ProofgateCommand> {
  const program = new ProofgateCommand('proofgate')
    .description(
      'Proof-bound request verification: keys, signed requests, bundles, the verifier, and Control',
    )
    .version(context.version, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp({ formatItem: helpItem, minWidthToWrap: MIN_TEXT_WIDTH, subcommandTerm: nameAndArguments })
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.output.stdout.write(text),
      // Errors are shown once, by runCli.
      writeErr: () => {},
      outputError: () => {},
    });
  const asked = COMMANDS.get(first ?? '');
  for (const load of asked === undefined ? COMMANDS.values() : [asked])
    (await load()).addTo(program, context);
  return program;
}

/** Minimum columns of a description beside its term. */
const MIN_TEXT_WIDTH = 16;

/** In a narrow terminal the description is below its term. */
function helpItem(term: string, termWidth: number, description: string, help: Help): string {
  const width = help.helpWidth ?? 80;
  if (width - termWidth - 4 >= MIN_TEXT_WIDTH) {
    return Help.prototype.formatItem.call(help, term, termWidth, description, help);
  }
  const lines = help.boxWrap(description, width - 6).split('\n');
  return [`  ${term}`, ...lines.map((line) => `      ${line}`)].join('\n');
}

/** Without `[options]`, which every command has. */
function nameAndArguments(command: Command): string {
  const shown = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
  return [command.name(), ...shown].join(' ');
}

/** Converts commander's errors to errors of this program. */
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

/** Finds the output format for errors before the settings are read. */
function requestedFormat(args: readonly string[], env: Environment): OutputFormat {
  const flag = args.lastIndexOf('--output');
  const joined = args.findLast((arg) => arg.startsWith('--output='))?.slice('--output='.length);
  const requested = joined ?? (flag === -1 ? env.PROOFGATE_OUTPUT : args[flag + 1]);
  return OUTPUT_FORMATS.find((format) => format === requested) ?? 'text';
}
