/** A proxy with its shipped configuration that asks `proofgate verifier --http-listen`. */

import { startPointVerifier } from '../../conformance/point-verifier.ts';
import { startGuardedApi } from '../proxies/guarded-api.ts';
import type { ProxyKind } from '../proxies/proxy.ts';
import type { Protocol } from '../site/gateway.ts';
import type { EnforcementPointDriver } from './enforcement-point.ts';

export interface ForwardAuthPoint {
  readonly name: string;
  readonly protocols: readonly Protocol[];
  readonly kind: ProxyKind;
}

export const forwardAuthPoint = ({ kind, name, protocols }: ForwardAuthPoint): EnforcementPointDriver => ({
  name,
  protocols,
  takesBodies: kind.bodyMode !== 'removed',
  unavailable: () => kind.unavailable(),
  start: async (options) => {
    const start = (flags: readonly string[]) => startPointVerifier(options, flags);
    const api = await startGuardedApi(kind, options.site, start, options.openUpstream);
    return {
      address: api.proxy,
      http2Address: { host: api.proxy.host, port: api.proxy.http2Port },
      resetsTrailers: kind.name === 'nginx',
      upstream: api.upstream,
      pid: api.verifier.pid,
      decisions: () => api.verifier.auditEvents(),
      stop: () => api.stop(),
    };
  },
});
