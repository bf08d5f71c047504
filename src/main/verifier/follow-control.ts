/** Validates `--control-url` and its related settings, and creates the connection to Control. */
import { readBearerTokenFile } from '../../program/bearer-token-file.ts';
import { readCaFile } from '../../program/ca-file.ts';
import { CliError, usageError } from '../../program/errors.ts';
import { isLoopback } from '../../protocol/loopback.ts';
import type { ControlConnection } from '../../verifier/loading/refresh/control-connection.ts';
import { ControlFailure } from '../../verifier/loading/refresh/control-failure.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/**
 * Sends no request; reads only the CA file.
 * @returns undefined when no Control is configured
 * @throws CliError `bundle_source_missing`, `control_url_invalid`, `control_url_not_https`,
 *   `control_token_file_missing`, or an error of a file
 */
export async function openControlConnection(
  settings: VerifierSettings,
): Promise<ControlConnection | undefined> {
  const { allowPlainHttp, bundle, controlCaFile, controlTokenFile, controlUrl } = settings;
  if (controlUrl === undefined) {
    if (bundle !== undefined) return undefined;
    throw usageError('bundle_source_missing', 'give --bundle, --control-url or both');
  }
  const url = parseControlUrl(controlUrl, allowPlainHttp);
  if (controlTokenFile === undefined) {
    throw usageError('control_token_file_missing', '--control-url needs --control-token-file');
  }
  // Loaded on demand: its HTTP client takes some MiB that a verifier without Control does not need.
  const { ControlConnection } = await import('../../verifier/loading/refresh/control-connection.ts');
  return new ControlConnection({
    url,
    readToken: () => readToken(controlTokenFile),
    certificateAuthorities: await readCaFile(controlCaFile),
  });
}

/** Plain HTTP exposes the token, so it is limited to loopback unless `--allow-plain-http` is given. */
function parseControlUrl(text: string, allowPlainHttp: boolean): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url?.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (url === undefined || !isOrigin || url.password !== '' || !/^https?:$/.test(url.protocol)) {
    throw usageError(
      'control_url_invalid',
      '--control-url must be https://HOST[:PORT], without path or password',
    );
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !allowPlainHttp) {
    throw usageError(
      'control_url_not_https',
      '--control-url must be https://, or --allow-plain-http be given',
    );
  }
  return url;
}

async function readToken(path: string): Promise<string> {
  try {
    return await readBearerTokenFile(path);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new ControlFailure('control_token_unusable', `--control-token-file: ${error.message}`);
  }
}
