/** Parses Control's base URL. The new key signs it. */
import { parseServiceUrl, type ServiceUrl } from '../service/service-url.ts';
import { EnrollError } from './enroll-error.ts';

export type ControlUrl = ServiceUrl;

/** @throws EnrollError `control_url_invalid`, `control_url_not_https` */
export function parseControlUrl(given: string): ControlUrl {
  const url = parseServiceUrl(given);
  switch (url) {
    case 'invalid':
      throw new EnrollError(
        'usage',
        'control_url_invalid',
        'the Control URL must read https://host[:port][/path], in lower case, without default port or query',
      );
    case 'not_https':
      throw new EnrollError(
        'usage',
        'control_url_not_https',
        'plain http:// is for loopback only: use https://',
      );
    default:
      return url;
  }
}
