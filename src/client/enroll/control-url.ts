/** Parses Control's base URL. The new key signs it, so it has exactly one valid spelling. */
import { isLoopback } from '../../protocol/loopback.ts';
import { ClientError } from '../client-error.ts';
import { parseRequestUrl, type RequestUrl } from '../request-url.ts';
import { EnrollError } from './enroll-error.ts';

export interface ControlUrl {
  /** As signed: without a trailing slash. */
  readonly text: string;
  /** `scheme://authority`. */
  readonly origin: string;
  /** Empty, or begins with a slash and does not end with one. */
  readonly pathPrefix: string;
}

/**
 * Allows plain HTTP only on loopback, because the request contains the workload's token.
 * @throws EnrollError `control_url_invalid`, `control_url_not_https`
 */
export function parseControlUrl(given: string): ControlUrl {
  const text = given.endsWith('/') ? given.slice(0, -1) : given;
  const url = readUrl(text);
  const pathPrefix = url.target === '/' ? '' : url.target;
  if (`${url.origin}${pathPrefix}` !== text || /[?]|\/$/.test(pathPrefix)) throw notInItsForm();
  if (url.scheme === 'http' && !isLoopback(url.host)) {
    throw new EnrollError(
      'usage',
      'control_url_not_https',
      'plain http:// is for loopback only: use https://',
    );
  }
  return { text, origin: url.origin, pathPrefix };
}

function readUrl(text: string): RequestUrl {
  try {
    return parseRequestUrl(text);
  } catch (error) {
    throw error instanceof ClientError ? notInItsForm() : error;
  }
}

function notInItsForm(): EnrollError {
  return new EnrollError(
    'usage',
    'control_url_invalid',
    'the Control URL must read https://host[:port][/path], in lower case, without default port or query',
  );
}
