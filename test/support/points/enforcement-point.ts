/**
 * The interface that an enforcement point implements for the conformance suite. To add a point: implement
 * {@link EnforcementPointDriver} in `points/<point>.ts` with the real program, add it to `points.ts`, and write a test file
 * of two lines (see `envoy-grpc.extended.test.ts`).
 */

import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import type { Upstream, UpstreamRequest } from '../harness/upstream.ts';
import type { Protocol } from '../site/gateway.ts';
import type { Site } from '../site/site.ts';

export interface EnforcementPointDriver {
  /** Names the file of results: lower case, digits, `-` and `.`, such as `envoy-grpc-1.40.0`. */
  readonly name: string;
  /** What callers can speak to it. */
  readonly protocols: readonly Protocol[];
  /** Whether it can allow a request with a body. Default true. */
  readonly takesBodies?: boolean;
  /** Why it cannot be started on this machine; undefined when it can. The suite is then skipped and says so. */
  readonly unavailable?: () => string | undefined;
  /** Resolves when the point answers requests. On failure nothing is left running. */
  start(options: PointOptions): Promise<EnforcementPoint>;
}

/** How the verifier behind the point, or in it, is set up. Everything that is not here: the shipped configuration. */
export interface PointOptions {
  readonly site: Site;
  /** `--bundle`; the directory is empty where the state is "no bundle". */
  readonly bundleDirectory: string;
  /** `memory`, or a Redis URL with a password: pass it through the environment. */
  readonly replay: string;
  /** `full_disk`: events go to `/dev/full` with `--audit required`, so that none can be written. */
  readonly audit: 'required_file' | 'full_disk';
  /** `--holder-quota`; undefined: the default. */
  readonly holderQuota: number | undefined;
  /** Further flags of the verifier. */
  readonly flags?: readonly string[];
  /** False where the verifier never becomes ready, for example without a bundle: wait until it is live. */
  readonly becomesReady: boolean;
  /**
   * Starts the API that the point forwards to; the point stops it. Default `startUpstream()`. The smuggling corpus passes one
   * that records raw bytes. Middleware has no upstream and ignores it.
   */
  readonly openUpstream?: () => Promise<Upstream>;
}

export interface EnforcementPoint {
  /** Where callers connect in plain text, HTTP/1.1 and, if the driver says so, HTTP/2 with prior knowledge. */
  readonly address: WireAddress;
  /** Where HTTP/2 has a port of its own. */
  readonly http2Address?: WireAddress;
  /** Whether it resets an HTTP/2 stream that has trailers, before its answer or after it. */
  readonly resetsTrailers?: boolean;
  readonly upstream: PointUpstream;
  /** Process of the verifier; undefined where it is the test's own. */
  readonly pid?: number;
  /** Every decision that the verifier recorded, in order. Empty with `full_disk`. */
  decisions(): Promise<readonly DecisionEvent[]>;
  /** Ends everything that {@link EnforcementPointDriver.start} started. Rejects when a process did not end in order. */
  stop(): Promise<void>;
}

/**
 * The API behind the point. For middleware it is the application's handler: its view of the method, target, headers and
 * body, with the typed result of the verification as context headers in lower case (`x-proofgate-subject` and so on).
 */
export interface PointUpstream {
  readonly requests: readonly UpstreamRequest[];
  clear(): void;
}
