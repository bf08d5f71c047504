/** `proofgate proxy`. */

import { startPointVerifier } from '../../conformance/point-verifier.ts';
import { startUpstream } from '../harness/upstream.ts';
import type { EnforcementPoint, EnforcementPointDriver, PointOptions } from './enforcement-point.ts';

export const REVERSE_PROXY: EnforcementPointDriver = {
  name: 'reverse-proxy',
  protocols: ['HTTP/1.1', 'HTTP/2'],
  start,
};

async function start(options: PointOptions): Promise<EnforcementPoint> {
  const upstream = await (options.openUpstream ?? startUpstream)();
  try {
    const proxy = await startPointVerifier(
      options,
      ['--upstream', `http://${upstream.host}:${upstream.port}`],
      {
        program: 'proxy',
        listen: 'tcp',
      },
    );
    if (proxy.address.kind !== 'tcp') throw new Error('the proxy does not listen on TCP');
    const { host, port } = proxy.address;
    return {
      address: { host, port },
      upstream,
      pid: proxy.pid,
      decisions: () => proxy.auditEvents(),
      stop: async () => {
        await proxy.stop();
        await upstream.stop();
      },
    };
  } catch (error) {
    await upstream.stop();
    throw error;
  }
}
