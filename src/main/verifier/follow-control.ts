/** `--control-url` and what belongs to it: where a verifier's bundle comes from, and the token that it asks with. */
import { isIP } from 'node:net';
import { readBearerTokenFile } from '../../program/bearer-token-file.ts';
import { readCaFile } from '../../program/ca-file.ts';
import { CliError, usageError } from '../../program/errors.ts';
import type { ControlConnection } from '../../verifier/loading/refresh/control-connection.ts';
import { ControlFailure } from '../../verifier/loading/refresh/control-failure.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/**
 * Looks at the settings alone, but for the certificates.
 * @returns undefined where no Control is named
 * @throws CliError `bundle_source_missing`, `control_url_invalid`, `control_url_not_https`,
 *   `control_token_file_missing`, and what a file is refused for
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
  // With its HTTP client it takes some MiB that a verifier without Control does not need.
  const { ControlConnection } = await import('../../verifier/loading/refresh/control-connection.ts');
  return new ControlConnection({
    url,
    readToken: () => readToken(controlTokenFile),
    certificateAuthorities: await readCaFile(controlCaFile),
  });
}

/** The token crosses plain HTTP in the clear: only on this machine, unless somebody says that the network is safe. */
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

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIP(hostname) === 4 && hostname.startsWith('127.');
}

async function readToken(path: string): Promise<string> {
  try {
    return await readBearerTokenFile(path);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new ControlFailure('control_token_unusable', `--control-token-file: ${error.message}`);
  }
}
