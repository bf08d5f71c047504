/** Control's base URL. It is part of what the new key signs, so it has one spelling. */
import { isLoopback } from '../../protocol/loopback.ts';
import { ClientError } from '../client-error.ts';
import { parseRequestUrl, type RequestUrl } from '../request-url.ts';
import { EnrollError } from './enroll-error.ts';

export interface ControlUrl {
  /** As signed: without a slash at its end. */
  readonly text: string;
  /** `scheme://authority`. */
  readonly origin: string;
  /** Empty, or begins with a slash and does not end with one. */
  readonly pathPrefix: string;
}

/**
 * Plain HTTP is for loopback alone: the workload's token goes there.
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
