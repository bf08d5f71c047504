/** Connects operator commands to Control and converts its errors to errors of the command line. */
import type { ControlUrl } from '../../caller/enroll/control-url.ts';
import { readCaFile } from '../../process/files/input-files.ts';
import { CliError } from '../../process/program/errors.ts';
import type { JsonMembers } from '../../process/program/output.ts';
import { visibleText } from '../../process/program/visible-text.ts';
import {
  optional,
  required,
  type SettingDeclarations,
  type SettingValues,
  text,
} from '../../process/settings/settings.ts';
import {
  type CliContext,
  type CommandDeclaration,
  type CommandInput,
  type CommandLineNode,
  command,
  type PositionalDeclarations,
} from '../define/define-command.ts';
import { type ControlApi, typed } from './client/control-api.ts';
import type { ControlClientOptions } from './client/control-client.ts';
import { OperatorError } from './client/operator-error.ts';
import { type CtlCredentials, readCredentials } from './ctl-credentials.ts';

/** Settings of every operator command. */
export const CONTROL_SETTINGS = {
  controlUrl: required(text('--control-url <url>', "Control's base URL")),
  controlCaFile: optional(text('--control-ca-file <file>', "CA certificates (PEM), instead of the system's")),
  sessionFile: optional(
    text('--session-file <file>', 'where `ctl login` keeps the session; without it, a file for this Control'),
  ),
};

/** Settings of commands that need authentication. */
export const CTL_SETTINGS = {
  ...CONTROL_SETTINGS,
  tokenFile: optional(
    text(
      '--token-file <file>',
      "an operator's or automation's token, such as the bootstrap token; mode 0600; without it, the session of `ctl login`",
    ),
  ),
};
type CtlSettings = typeof CTL_SETTINGS;
export type ControlValues = SettingValues<typeof CONTROL_SETTINGS>;
export type CtlValues = SettingValues<typeof CTL_SETTINGS>;

/**
 * An operator's command that sends requests to Control and shows one result.
 * @param examples command lines after `proofgate ctl`, without the settings of every command
 */
export function ctlCommand<S extends SettingDeclarations, P extends PositionalDeclarations>({
  settings,
  examples,
  run,
  ...declaration
}: Omit<CommandDeclaration<S, P>, 'run'> & {
  /** @returns undefined when it has written its result itself */
  run(
    api: ControlApi,
    input: CommandInput<CtlSettings & S, P>,
    context: CliContext,
  ): Promise<CtlResult | undefined>;
}): CommandLineNode {
  return command<CtlSettings & S, P>({
    ...declaration,
    settings: { ...CTL_SETTINGS, ...settings },
    examples: examples.map((line) => `proofgate ctl ${line} ${EXAMPLE_SETTINGS}`),
    run: (input, context) =>
      withControl(input.settings, context, async (api) => {
        const result = await run(api, input, context);
        // Names of other users could send commands to the terminal.
        if (result !== undefined) context.output.result(result.lines.map(visibleText), result.object);
      }),
  });
}

const EXAMPLE_SETTINGS = '--control-url https://control.example --token-file token';

export interface CtlResult {
  /** For people; may contain texts of other users. */
  readonly lines: readonly string[];
  readonly object: JsonMembers;
}

/**
 * Runs an operator's command with a connection to Control, with the token of the token file or the session.
 * @throws CliError, OperatorError, EnrollError `control_url_invalid`, `control_url_not_https`
 */
export async function withControl<T>(
  values: CtlValues,
  { env, output }: Pick<CliContext, 'env'> & Partial<Pick<CliContext, 'output'>>,
  work: (api: ControlApi) => Promise<T>,
): Promise<T> {
  const url = await readControlUrl(values);
  const credentials = await readCredentials(values, url, env);
  try {
    const onListed = (items: number) => void output?.progress(`${items} items read`);
    return await withConnection(values, { url, token: credentials.token, onListed }, work);
  } catch (error) {
    throw advised(error, credentials);
  }
}

/** @throws EnrollError `control_url_invalid`, `control_url_not_https` */
export async function readControlUrl({ controlUrl }: ControlValues): Promise<ControlUrl> {
  const { parseControlUrl } = await import('../../caller/enroll/control-url.ts');
  return parseControlUrl(controlUrl);
}

/** Runs a function with a connection to Control and closes the connection afterwards. @throws CliError, OperatorError */
export async function withConnection<T>(
  { controlCaFile }: ControlValues,
  connection: Omit<ControlClientOptions, 'caPem'>,
  work: (api: ControlApi) => Promise<T>,
): Promise<T> {
  const { ControlClient } = await import('./client/control-client.ts');
  const client = new ControlClient({ ...connection, caPem: await readCaFile(controlCaFile) });
  try {
    return await work(typed(client));
  } finally {
    await client.close();
  }
}

/** Control does not distinguish "missing" from "not readable", so that its answer reveals no resource. */
const NOT_FOUND = 'no resource of this ID is visible to you; proofgate ctl get KIND lists IDs';

/** Adds advice: Control reports only that a token is invalid, and the command knows where the token came from. */
function advised(error: unknown, { advice }: CtlCredentials): unknown {
  if (!(error instanceof OperatorError)) return error;
  if (error.code === 'authentication_required') return new CliError(error.kind, error.code, advice);
  if (error.code === 'not_found') return new CliError(error.kind, error.code, NOT_FOUND);
  return error;
}
