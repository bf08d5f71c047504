/** Parses a broker's public URL, which callers sign. */
import { parseServiceUrl, type ServiceUrl } from '../service/service-url.ts';
import { BrokerError } from './broker-error.ts';

/** @throws BrokerError `broker_url_invalid`, `broker_url_not_https` */
export function parseBrokerUrl(given: string): ServiceUrl {
  const url = parseServiceUrl(given);
  switch (url) {
    case 'invalid':
      throw new BrokerError(
        'usage',
        'broker_url_invalid',
        'the broker URL must read https://host[:port][/path], in lower case, without default port or query',
      );
    case 'not_https':
      throw new BrokerError(
        'usage',
        'broker_url_not_https',
        'plain http:// is for loopback only: use https://',
      );
    default:
      return url;
  }
}
