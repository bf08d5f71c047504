/** The verification core's decision on a request as the caller sent it: no point may allow what this denies. */
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { readPublicKeyFile } from '../../../src/process/files/public-key-file.ts';
import type { HeaderLookup, RequestHeaders } from '../../../src/protocol/credentials.ts';
import { isScheme } from '../../../src/protocol/request-target.ts';
import type { Expected } from '../../../src/tools/conformance/wire/conformance-case.ts';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { decide } from '../../../src/verifier/decision/decide.ts';
import { createPassportCache } from '../../../src/verifier/decision/facts/passport-cache.ts';
import type { BodyState, RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { MemoryMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import type { Protocol } from '../site/gateway.ts';
import { AUTH_SITE, nowSeconds, type Site } from '../site/site.ts';

const REALTIME_STALENESS_SECONDS = 30;

/** Steps 1 to 5. A request that passes them is `allowed`: replay and audit come later. */
export function coreDecision(
  protocol: Protocol,
  request: WireRequest,
  snapshot: Snapshot | undefined,
): Expected {
  const facts = factsAsSent(protocol, request);
  if (facts === undefined) return { kind: 'malformed' };
  const inputs = {
    nowSeconds: nowSeconds(),
    realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
    passports: createPassportCache(),
  };
  const verdict = decide(facts, snapshot, inputs, {});
  if (verdict.kind === 'verified') return { kind: 'allowed' };
  return { kind: 'denied', reason: verdict.reason, detail: verdict.detail };
}

/** The bundle of a directory as a verifier has it; undefined when the directory is empty. */
export async function loadSnapshot(site: Site, directory: string): Promise<Snapshot | undefined> {
  const signers = { keys: [await readPublicKeyFile(site.bundleKeyFile)], threshold: 1 };
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark: new MemoryMark(),
    nowSeconds,
  });
  try {
    await loader.start();
    return loader.snapshot;
  } finally {
    loader.close();
  }
}

/** Undefined when the request can be read in more than one way, so that there are no exact facts. */
export function factsAsSent(protocol: Protocol, request: WireRequest): RequestFacts | undefined {
  const headers = headersAsSent(request.headers ?? []);
  const line = requestLine(protocol, request);
  const host = headers.lookup('host');
  const isFramedTwice = ['content-length', 'transfer-encoding'].some(
    (name) => headers.lookup(name).kind !== 'absent',
  );
  if (line === undefined || isFramedTwice) return undefined;
  if (host.kind !== 'absent' && protocol === 'HTTP/1.1') return undefined;
  return { method: request.method, ...line, headers, body: bodyAsSent(request), removesProofs: true };
}

type RequestLine = Pick<RequestFacts, 'scheme' | 'authority' | 'target'>;

/** An absolute target replaces the Host (RFC 9112 section 3.2.2), as `:authority` does (RFC 9113 section 8.3.1). The connection is in plain text, whatever `:scheme` says. */
function requestLine(protocol: Protocol, { authority, target }: WireRequest): RequestLine | undefined {
  const scheme = 'http';
  if (protocol === 'HTTP/2') return { scheme, authority, target };
  if (authority === '') return undefined;
  const absolute = /^([a-z]+):\/\/([^/?#]*)(.*)$/.exec(target);
  if (absolute === null) return { scheme, authority, target };
  const [, named = '', host = '', path = ''] = absolute;
  if (!isScheme(named) || host === '') return undefined;
  return { scheme: named, authority: host, target: path };
}

function headersAsSent(lines: readonly HeaderLine[]): RequestHeaders {
  return {
    lookup: (name): HeaderLookup => {
      const [value, ...more] = lines.filter(([key]) => key.toLowerCase() === name).map(([, text]) => text);
      if (value === undefined) return { kind: 'absent' };
      if (more.length > 0) return { kind: 'ambiguous' };
      return { kind: 'single', value: value.replace(/^[ \t]+|[ \t]+$/g, '') };
    },
    values: (name) => lines.flatMap(([key, text]) => (key.toLowerCase() === name ? [text] : [])),
    names: () => lines.map(([name]) => name),
    lines: () => lines,
  };
}

function bodyAsSent({ body }: WireRequest): BodyState {
  return body === undefined ? { kind: 'none' } : { kind: 'exact', bytes: Buffer.from(body) };
}
