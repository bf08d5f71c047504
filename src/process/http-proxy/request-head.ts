/** Faults of a request's head that are answered before anything is verified. */
import { hasTooManyLines } from '../../protocol/header-line-limit.ts';
import type { ClientExchange, ClientRequest, HeaderLines } from './client-exchange.ts';
import { offersOnlyHttp2 } from './http2-offer.ts';
import { type ProblemResponse, problemOfFault } from './problem.ts';
import { type ProxyFaultCode, problemOfProxyFault } from './proxy-faults.ts';
import { headerLines } from './raw-headers.ts';
import { faultOf } from './request-faults.ts';
import { isWebSocketHandshake } from './websocket-handshake.ts';

export interface HeadFault {
  readonly code: string;
  readonly problem: ProblemResponse;
}

export function headFaultOf({ request, upgrade }: ClientExchange): HeadFault | undefined {
  const { method, protocolVersion, pseudoHeaders, rawHeaders } = request;
  // Checked first, because the other checks need all lines.
  if (hasTooManyLines(rawHeaders)) return TOO_MANY_LINES;
  const lines = headerLines(rawHeaders);
  const shared = faultOf({
    httpVersion: protocolVersion,
    method,
    lines,
    authority: pseudoHeaders?.authority,
  });
  if (shared !== undefined) return { code: shared, problem: problemOfFault(shared) };
  const code = ownFaultOf(request, lines) ?? upgradeFaultOf(request, upgrade !== undefined, lines);
  return code && { code, problem: problemOfProxyFault(code) };
}

const TOO_MANY_LINES: HeadFault = {
  code: 'headers_too_large',
  problem: problemOfProxyFault('headers_too_large'),
};

function ownFaultOf(
  { protocolVersion, pseudoHeaders, scheme }: ClientRequest,
  lines: HeaderLines,
): ProxyFaultCode | undefined {
  // An HTTP/1.0 client cannot distinguish an interrupted response from a complete one.
  if (protocolVersion === '1.0') return 'http_version';
  if (pseudoHeaders?.scheme !== undefined && pseudoHeaders.scheme !== scheme) return 'scheme_differs';
  for (const [name, value] of lines) {
    const lower = name.toLowerCase();
    if (lower === 'expect' && value.toLowerCase() !== '100-continue') return 'expectation_failed';
  }
  return undefined;
}

/**
 * Also rejects a request that only looks like an upgrade, because the upstream could treat it as one. @param isUpgrade
 * whether the parser treated it as an upgrade, and so read no body
 */
function upgradeFaultOf(
  request: ClientRequest,
  isUpgrade: boolean,
  lines: HeaderLines,
): ProxyFaultCode | undefined {
  const { body, method, protocolVersion: httpVersion, rawHeaders } = request;
  if (!lines.some(([name]) => name.toLowerCase() === 'upgrade')) return undefined;
  const isFine = isUpgrade
    ? isWebSocketHandshake({ httpVersion, method, hasBody: body.kind !== 'none', lines })
    : httpVersion === '1.1' && offersOnlyHttp2(rawHeaders);
  return isFine ? undefined : 'upgrade_refused';
}
