/** Envoy between a recording verifier and a recording upstream, for tests of facts about Envoy. */
import { afterEach } from '@jest/globals';
import {
  headerValues,
  NoResponse,
  type WireClient,
  type WireRequest,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { type RunningEnvoy, startEnvoy } from './envoy.ts';
import { closeAtOnce, type EnvoyAdaptation, patient } from './envoy-config.ts';
import {
  type CheckedHttp,
  type CheckMessage,
  checkedHeaders,
  type RecordingAuthz,
  startRecordingAuthz,
} from './recording-authz.ts';
import { startUpstream, type Upstream, type UpstreamOptions, type UpstreamRequest } from './upstream.ts';

export interface RecordedEnvoy {
  readonly envoy: RunningEnvoy;
  readonly authz: RecordingAuthz;
  readonly upstream: Upstream;
  readonly http1: WireClient;
  readonly http2: WireClient;
  /** Sends one request and returns what each party saw of it. It does not change the verifier's behaviour. */
  measure(client: WireClient, request: WireRequest): Promise<Measurement>;
  stop(): Promise<void>;
}

export interface Measurement {
  readonly response: WireResponse;
  /** The Checks that the verifier received, in order: one, or none when Envoy answered by itself. */
  readonly checks: readonly CheckMessage[];
  /** What reached the upstream, in order. */
  readonly forwarded: readonly UpstreamRequest[];
}

export interface RecordedEnvoyOptions extends Omit<EnvoyAdaptation, 'verifier' | 'upstream'> {
  readonly upstreamProtocol?: UpstreamOptions['protocol'];
  /** Default false: {@link patient}. */
  readonly shippedTimeouts?: boolean;
}

/** Starts Envoys that stop after the test. */
export function useRecordedEnvoys(): typeof startRecordedEnvoy {
  const started: RecordedEnvoy[] = [];
  afterEach(async () => {
    for (const recorded of started.splice(0)) await recorded.stop();
  });
  return async (version, options) => {
    const recorded = await startRecordedEnvoy(version, options);
    started.push(recorded);
    return recorded;
  };
}

export async function startRecordedEnvoy(
  version: string,
  options: RecordedEnvoyOptions = {},
): Promise<RecordedEnvoy> {
  const { upstreamProtocol = 'HTTP/1.1', shippedTimeouts = false, ...adaptation } = options;
  const authz = await startRecordingAuthz();
  const upstream = await startUpstream({ protocol: upstreamProtocol });
  const stopParties = () => Promise.all([authz.stop(), upstream.stop()]);
  try {
    const target = { host: upstream.host, port: upstream.port, http2: upstreamProtocol === 'h2c' };
    const envoy = await startEnvoy(version, {
      ...adaptation,
      edits: [closeAtOnce, ...(shippedTimeouts ? [] : patient), ...(adaptation.edits ?? [])],
      verifier: authz.address,
      upstream: target,
    });
    return {
      envoy,
      authz,
      upstream,
      http1: http1Client(envoy),
      http2: http2Client(envoy),
      measure: (client, request) => measure(authz, upstream, client, request),
      stop: async () => {
        await envoy.stop();
        await stopParties();
      },
    };
  } catch (error) {
    await stopParties();
    throw error;
  }
}

async function measure(
  authz: RecordingAuthz,
  upstream: Upstream,
  client: WireClient,
  request: WireRequest,
): Promise<Measurement> {
  authz.forget();
  upstream.clear();
  const response = await client.send(request);
  return { response, checks: [...authz.checks], forwarded: [...upstream.requests] };
}

/** The one Check of a measurement. */
export function checkOf({ checks, response }: Measurement): CheckMessage {
  const [only] = checks;
  if (only === undefined || checks.length > 1) {
    throw new Error(`${checks.length} Checks instead of one; the caller got ${response.status}`);
  }
  return only;
}

export function checkedHttp(measurement: Measurement): CheckedHttp {
  return checkOf(measurement).attributes.request.http;
}

/** The values of one header in the Check: one entry a line. */
export function checkedValues(measurement: Measurement, name: string): readonly string[] {
  return headerValues(checkedHeaders(checkedHttp(measurement)), name);
}

/** The one request that reached the upstream. */
export function forwardedRequest({ forwarded, response }: Measurement): UpstreamRequest {
  const [only] = forwarded;
  if (only === undefined || forwarded.length > 1) {
    throw new Error(`${forwarded.length} requests forwarded; the caller got ${response.status}`);
  }
  return only;
}

/** True when Envoy rejects the request itself, with 400 or an HTTP/2 reset, and neither verifier nor upstream sees it. */
export async function refusedByEnvoy(
  recorded: RecordedEnvoy,
  client: WireClient,
  request: WireRequest,
): Promise<boolean> {
  recorded.authz.forget();
  recorded.upstream.clear();
  const status = await client.send(request).then(
    (response) => response.status,
    (error: unknown) => {
      if (error instanceof NoResponse && error.kind !== 'timeout') return 400;
      throw error;
    },
  );
  return status === 400 && recorded.authz.checks.length === 0 && recorded.upstream.requests.length === 0;
}
