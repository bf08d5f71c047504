/** How operator commands reach Control, and how what goes wrong there comes out. */
import type { ControlApi } from '../client/operator/control-api.ts';
import { OperatorError } from '../client/operator/operator-error.ts';
import { CliError } from './errors.ts';
import { readCaFile, readInputBytes } from './input-files.ts';
import { optional, required, type SettingValues, text } from './settings.ts';

export const CTL_SETTINGS = {
  controlUrl: required(text('--control-url <url>', "Control's base URL")),
  tokenFile: required(
    text(
      '--token-file <file>',
      "an operator's or automation's token, such as the bootstrap token; mode 0600",
    ),
  ),
  controlCaFile: optional(
    text('--control-ca-file <file>', "certificates (PEM) to trust instead of the system's"),
  ),
};
export type CtlValues = SettingValues<typeof CTL_SETTINGS>;

const MAX_TOKEN_BYTES = 4096;
const TOKEN = /^[\x21-\x7e]{1,512}$/;

/**
 * Runs an operator's command with a connection to Control.
 * @throws CliError
 */
export async function withControl<T>(values: CtlValues, work: (api: ControlApi) => Promise<T>): Promise<T> {
  const { ControlApi } = await import('../client/operator/control-api.ts');
  const { parseControlUrl } = await import('../client/enroll/control-url.ts');
  const { fromClientError } = await import('./client-errors.ts');
  try {
    const url = parseControlUrl(values.controlUrl);
    const token = await readTokenFile(values.tokenFile);
    const api = new ControlApi({ url, token, caPem: await readCaFile(values.controlCaFile) });
    try {
      return await work(api);
    } finally {
      await api.close();
    }
  } catch (error) {
    throw error instanceof OperatorError
      ? new CliError(error.kind, error.code, error.message)
      : fromClientError(error);
  }
}

async function readTokenFile(path: string): Promise<string> {
  const bytes = await readInputBytes(path, { maxBytes: MAX_TOKEN_BYTES, secret: true });
  const token = bytes.toString('utf8').trim();
  if (!TOKEN.test(token)) throw new CliError('usage', 'token_file_invalid', `${path} does not hold a token`);
  return token;
}
