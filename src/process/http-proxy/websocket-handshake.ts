/** Recognises the opening handshake of a WebSocket (RFC 6455 section 4.2.1). */
import type { HeaderLine } from './raw-headers.ts';

export interface HandshakeRequest {
  readonly httpVersion: string;
  readonly method: string;
  readonly hasBody: boolean;
  readonly lines: readonly HeaderLine[];
}

/** Whether a request, whose parser has seen `Connection: upgrade`, is a WebSocket handshake. */
export function isWebSocketHandshake({ hasBody, httpVersion, lines, method }: HandshakeRequest): boolean {
  const values = (wanted: string) =>
    lines.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value.trim());
  const [upgrade, ...moreUpgrades] = values('upgrade');
  const [key, ...moreKeys] = values('sec-websocket-key');
  return (
    // HTTP/1.0 has no upgrades (RFC 9110 section 7.8), HTTP/2 none of this form.
    httpVersion === '1.1' &&
    method === 'GET' &&
    !hasBody &&
    upgrade?.toLowerCase() === 'websocket' &&
    /^[A-Za-z0-9+/]{22}==$/.test(key ?? '') &&
    values('sec-websocket-version').join() === '13' &&
    moreUpgrades.length + moreKeys.length === 0
  );
}
