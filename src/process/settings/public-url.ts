/** Parses public URLs of servers: `https://host[:port][/path]`, in the one spelling that clients sign. */
import { isLoopback } from '../../protocol/loopback.ts';
import { usageError } from '../program/errors.ts';

/** @returns the URL without a trailing slash @throws CliError `bad_public_url` */
export function parsePublicUrl(text: string, allowPlainHttp: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const path = url === undefined || url.pathname === '/' ? '' : url.pathname.replace(/\/$/, '');
  if (url === undefined || `${url.origin}${path}` !== text.replace(/\/$/, '')) {
    throw usageError(
      'bad_public_url',
      '--public-url must read https://host[:port][/path], in lower case, without default port or query',
    );
  }
  const isPlain = url.protocol === 'http:' && (allowPlainHttp || isLoopback(url.hostname));
  if (url.protocol !== 'https:' && !isPlain) {
    throw usageError('bad_public_url', '--public-url must be https:// beyond loopback');
  }
  return `${url.origin}${path}`;
}
