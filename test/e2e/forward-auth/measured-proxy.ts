/** A proxy between a recording forward-authentication server and a recording API, for facts about the proxy. */
import { afterAll, beforeAll } from '@jest/globals';
import { type CheckedRequest, readCheck } from '../../../src/enforcement/ext-authz-http/checked-request.ts';
import { HTTP_PROFILES } from '../../../src/enforcement/ext-authz-http/profiles.ts';
import {
  headerValues,
  NoResponse,
  pairs,
  type WireClient,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { startUpstream, type Upstream, type UpstreamRequest } from '../../support/harness/upstream.ts';
import { type ForwardProxy, type ProxyKind, SECRET } from '../../support/proxies/proxy.ts';
import { type RecordedCheck, type RecordingCheck, startRecordingCheck } from './recording-check.ts';

export const AUTHORITY = 'api.shop.example';

export interface Measured {
  readonly proxy: ForwardProxy;
  readonly check: RecordingCheck;
  readonly upstream: Upstream;
}

/** What each party saw of one request. */
export interface Observation {
  /** 0 when the proxy reset the stream or closed the connection. */
  readonly status: number;
  readonly answer: { header(name: string): readonly string[]; readonly body: string };
  readonly checks: readonly RecordedCheck[];
  readonly forwarded: readonly UpstreamRequest[];
  /** What the verifier makes of the check. */
  readonly read: CheckedRequest | undefined;
}

/** Runs from the first test of the suite to its last. */
export function useMeasuredProxy(kind: ProxyKind): {
  observe(client: 'http1' | 'http2', request: Partial<WireRequest>): Promise<Observation>;
  readonly parts: Measured;
} {
  let parts: Measured | undefined;
  beforeAll(async () => {
    const check = await startRecordingCheck();
    const upstream = await startUpstream();
    const proxy = await kind.start({ socketPath: check.socketPath, upstream, authority: AUTHORITY });
    parts = { check, upstream, proxy };
  });
  afterAll(async () => {
    await parts?.proxy.stop();
    await Promise.all([parts?.check.stop(), parts?.upstream.stop()]);
  });
  const running = () => {
    if (parts === undefined) throw new Error('the proxy has not started');
    return parts;
  };
  return {
    get parts() {
      return running();
    },
    observe: async (client, request) => {
      const { check, proxy, upstream } = running();
      check.clear();
      upstream.clear();
      const answer = await send(proxy[client], {
        method: 'GET',
        target: '/',
        authority: AUTHORITY,
        ...request,
      });
      const checks = [...check.checks];
      const [only] = checks;
      return {
        ...answer,
        checks,
        forwarded: [...upstream.requests],
        read:
          only &&
          readCheck({ ...READER, profile: HTTP_PROFILES[kind.profile], bodyMode: kind.bodyMode }, only),
      };
    },
  };
}

const READER = { origin: { scheme: 'http', authority: AUTHORITY }, secret: SECRET } as const;

async function send(
  client: WireClient,
  request: WireRequest,
): Promise<Pick<Observation, 'status' | 'answer'>> {
  try {
    const { body, headers, status } = await client.send(request);
    const answer = { header: (name: string) => headerValues(headers, name), body: body.toString('latin1') };
    return { status, answer };
  } catch (error) {
    if (error instanceof NoResponse && error.kind !== 'timeout') {
      return { status: 0, answer: { header: () => [], body: '' } };
    }
    throw error;
  }
}

export function checkedHeader({ checks }: Observation, name: string): readonly string[] {
  return headerValues(pairs(checks[0]?.rawHeaders ?? []), name);
}

export function forwardedHeader({ forwarded }: Observation, name: string): readonly string[] {
  return headerValues(forwarded[0]?.headers ?? [], name);
}
