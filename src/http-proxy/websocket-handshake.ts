/** Recognises the opening handshake of a WebSocket (RFC 6455 section 4.2.1). */
import type { HeaderLine } from './raw-headers.ts';

export interface HandshakeRequest {
  readonly method: string;
  readonly hasBody: boolean;
  readonly lines: readonly HeaderLine[];
}

/** Of a request whose parser has seen `Connection: upgrade`. */
export function isWebSocketHandshake({ hasBody, lines, method }: HandshakeRequest): boolean {
  const values = (wanted: string) =>
    lines.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value.trim());
  const [upgrade, ...moreUpgrades] = values('upgrade');
  const [key, ...moreKeys] = values('sec-websocket-key');
  return (
    method === 'GET' &&
    !hasBody &&
    upgrade?.toLowerCase() === 'websocket' &&
    /^[A-Za-z0-9+/]{22}==$/.test(key ?? '') &&
    values('sec-websocket-version').join() === '13' &&
    moreUpgrades.length + moreKeys.length === 0
  );
}
