/** How operator commands reach Control, and how what goes wrong there comes out. */
import type { ControlUrl } from '../../client/enroll/control-url.ts';
import type { ControlApi } from '../../client/operator/control-api.ts';
import { OperatorError } from '../../client/operator/operator-error.ts';
import { readCaFile } from '../../program/ca-file.ts';
import { CliError } from '../../program/errors.ts';
import { optional, required, type SettingValues, text } from '../../program/settings.ts';
import type { CliContext } from '../define-command.ts';
import { type CtlCredentials, readCredentials } from './ctl-credentials.ts';

/** Of every operator command. */
export const CONTROL_SETTINGS = {
  controlUrl: required(text('--control-url <url>', "Control's base URL")),
  controlCaFile: optional(
    text('--control-ca-file <file>', "certificates (PEM) to trust instead of the system's"),
  ),
  sessionFile: optional(
    text('--session-file <file>', 'where `ctl login` keeps the session; without it, a file for this Control'),
  ),
};

/** Of those that need to be somebody. */
export const CTL_SETTINGS = {
  ...CONTROL_SETTINGS,
  tokenFile: optional(
    text(
      '--token-file <file>',
      "an operator's or automation's token, such as the bootstrap token; mode 0600; without it, the session of `ctl login`",
    ),
  ),
};
export type ControlValues = SettingValues<typeof CONTROL_SETTINGS>;
export type CtlValues = SettingValues<typeof CTL_SETTINGS>;

/**
 * Runs an operator's command with a connection to Control, as whom the token file or the session says.
 * @throws CliError
 */
export async function withControl<T>(
  values: CtlValues,
  { env }: Pick<CliContext, 'env'>,
  work: (api: ControlApi) => Promise<T>,
): Promise<T> {
  const url = await readControlUrl(values);
  const credentials = await readCredentials(values, url, env);
  try {
    return await withConnection(values, { url, token: credentials.token }, work);
  } catch (error) {
    throw advised(error, credentials);
  }
}

/** @throws CliError `control_url_invalid`, `control_url_not_https` */
export async function readControlUrl({ controlUrl }: ControlValues): Promise<ControlUrl> {
  const { parseControlUrl } = await import('../../client/enroll/control-url.ts');
  try {
    return parseControlUrl(controlUrl);
  } catch (error) {
    throw await shownError(error);
  }
}

/**
 * Runs something with a connection to Control, which is closed afterwards.
 * @throws CliError
 */
export async function withConnection<T>(
  { controlCaFile }: ControlValues,
  { url, token }: { readonly url: ControlUrl; readonly token: string | undefined },
  work: (api: ControlApi) => Promise<T>,
): Promise<T> {
  const { ControlApi } = await import('../../client/operator/control-api.ts');
  try {
    const api = new ControlApi({ url, token, caPem: await readCaFile(controlCaFile) });
    try {
      return await work(api);
    } finally {
      await api.close();
    }
  } catch (error) {
    throw await shownError(error);
  }
}

async function shownError(error: unknown): Promise<unknown> {
  if (error instanceof OperatorError) return new CliError(error.kind, error.code, error.message);
  const { fromClientError } = await import('../client-errors.ts');
  return fromClientError(error);
}

/** Control says no more, so that nobody learns of what they may not read. */
const NOT_FOUND =
  'Control holds nothing of this ID, or nothing that you may read: proofgate ctl get lists what there is, with IDs';

/** Control knows that a token is not good; which one it was, and what helps, is known here. */
function advised(error: unknown, { advice }: CtlCredentials): unknown {
  if (!(error instanceof CliError)) return error;
  if (error.code === 'authentication_required') return new CliError(error.kind, error.code, advice);
  if (error.code === 'not_found') return new CliError(error.kind, error.code, NOT_FOUND);
  return error;
}
