/**
 * Splits a request URL without changing its target, so that the client signs exactly the target that it sends.
 * `new URL()` would resolve dot segments, escape characters and read `\` as `/`.
 * Source: docs/design/protocol.md "Routes, origins, paths".
 */

import { ClientError } from '../protocol/client-error.ts';
import { MAX_PORT } from '../protocol/limits.ts';
import {
  isCanonicalAuthority,
  isCanonicalTarget,
  isScheme,
  normalizeAuthority,
  type Scheme,
} from '../protocol/request-target.ts';

export interface RequestUrl {
  readonly scheme: Scheme;
  /** Lower case, without the scheme's default port. */
  readonly authority: string;
  /** Host of the authority: no port, no brackets. */
  readonly host: string;
  /** Port; the scheme's default port when the URL names none. */
  readonly port: number;
  /** `scheme://authority`. */
  readonly origin: string;
  /** Path and query exactly as given; `/` for an empty path (RFC 9112 section 3.2.1). */
  readonly target: string;
}

const URL_PARTS = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#\\]*)(.*)$/s;
const DEFAULT_PORT: { readonly [S in Scheme]: number } = { http: 80, https: 443 };

/** @throws ClientError `url_invalid`, `url_not_canonical` */
export function parseRequestUrl(url: string): RequestUrl {
  const [, schemeText = '', authorityText = '', rest = ''] = URL_PARTS.exec(url) ?? [];
  const scheme = schemeText.toLowerCase();
  if (!isScheme(scheme)) throw new ClientError('url_invalid', 'the URL must begin with https:// or http://');
  const authority = normalizeAuthority(scheme, authorityText);
  if (!isCanonicalAuthority(scheme, authority)) {
    throw new ClientError(
      'url_invalid',
      'the URL must name a host and perhaps a port, without user name, trailing dot or other characters',
    );
  }
  const { host, port } = splitAuthority(scheme, authority);
  if (port > MAX_PORT) throw new ClientError('url_invalid', `the port is above ${MAX_PORT}`);
  const target = rest.startsWith('/') ? rest : `/${rest}`;
  if (!isCanonicalTarget(target)) throw new ClientError('url_not_canonical', NOT_CANONICAL);
  return { scheme, authority, host, port, origin: `${scheme}://${authority}`, target };
}

const NOT_CANONICAL =
  'the path must have no dot segments, "//", ";", "\\" or needless escapes, and path and query only ' +
  'visible ASCII characters and no "#"; escape everything else in UTF-8';

function splitAuthority(scheme: Scheme, authority: string): { readonly host: string; readonly port: number } {
  const [, host = '', portText] = /^(.*?)(?::([0-9]+))?$/.exec(authority) ?? [];
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port: portText === undefined ? DEFAULT_PORT[scheme] : Number(portText),
  };
}
