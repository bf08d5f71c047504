/** Parses the base URL of Control or a broker. Callers sign it, so it has exactly one valid spelling. */

import { ClientError } from '../../protocol/client-error.ts';
import { isLoopback } from '../../protocol/loopback.ts';
import { parseRequestUrl, type RequestUrl } from '../request-url.ts';

export interface ServiceUrl {
  /** The URL in the form that is signed, without a trailing slash. */
  readonly text: string;
  /** `scheme://authority`. */
  readonly origin: string;
  /** Empty, or begins with a slash and does not end with one. */
  readonly pathPrefix: string;
}

/** Allows plain HTTP only on loopback, because requests and answers contain credentials. */
export function parseServiceUrl(given: string): ServiceUrl | 'invalid' | 'not_https' {
  const text = given.endsWith('/') ? given.slice(0, -1) : given;
  const url = readUrl(text);
  if (url === undefined) return 'invalid';
  const pathPrefix = url.target === '/' ? '' : url.target;
  if (`${url.origin}${pathPrefix}` !== text || /[?]|\/$/.test(pathPrefix)) return 'invalid';
  if (url.scheme === 'http' && !isLoopback(url.host)) return 'not_https';
  return { text, origin: url.origin, pathPrefix };
}

function readUrl(text: string): RequestUrl | undefined {
  try {
    return parseRequestUrl(text);
  } catch (error) {
    if (error instanceof ClientError) return undefined;
    throw error;
  }
}
