/**
 * Compares the requests at the upstream with those that the verifier allowed, and the answers of callers with their
 * requests. Every difference is a success of the attacker.
 */
import { createHash } from 'node:crypto';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import { NOT_BOUND, type Transcript } from '../../../src/protocol/transcript.ts';
import { CONTEXT_HEADERS } from '../../../src/protocol/wire-names.ts';
import { type HeaderLine, headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { LENIENT_READINGS, type ReadRequest, readRequests, STRICT } from '../../smuggling/oracle/readings.ts';
import type { UpstreamRequest } from '../harness/upstream.ts';
import { isForbidden } from '../site/smuggled-headers.ts';
import { asUpstreamRequest, type RecordedConnection } from './recording-upstream.ts';

export type SuccessKind =
  /** A request at the upstream that no decision allowed, or one more than were allowed. */
  | 'unverified'
  /** Method, target, authority, body or a signed header is not what was verified. */
  | 'altered'
  /** Upstreams can read the same bytes as different requests. */
  | 'ambiguous'
  /** A header that only the verifier may write, a credential, or one that rewrites the request. */
  | 'context'
  /** A caller received the answer to another request. */
  | 'answer'
  /** The point stopped serving. */
  | 'outage';

export interface Success {
  readonly kind: SuccessKind;
  /** Name of the case whose proof was used; undefined where none was. */
  readonly caseName?: string | undefined;
  readonly what: string;
}

/** One signed request of a case. */
export interface KnownRequest {
  readonly caseName: string;
  readonly transcript: Transcript;
}

export interface Evidence {
  /** By hash of the transcript. */
  readonly signed: ReadonlyMap<string, KnownRequest>;
  readonly decisions: readonly DecisionEvent[];
  /** Connections of an upstream that records bytes; otherwise {@link requests} has the requests of a handler. */
  readonly connections?: readonly RecordedConnection[];
  readonly requests: readonly UpstreamRequest[];
  /** `Host` at the upstream, where the point does not forward the caller's. */
  readonly upstreamHost?: string | undefined;
}

export function judge(evidence: Evidence): readonly Success[] {
  const allowed = new Map(
    evidence.decisions.flatMap((event) =>
      event.outcome === 'allowed' ? [[event.decision_id, event] as const] : [],
    ),
  );
  const used = new Set<string>();
  const arrived =
    evidence.connections === undefined
      ? evidence.requests.map((request) => ({ request, isComplete: true }))
      : evidence.connections.flatMap(arrivals);
  return [
    ...(evidence.connections ?? []).flatMap(ambiguities),
    ...arrived.flatMap(({ request, isComplete }) => {
      const ids = headerValues(request.headers, CONTEXT_HEADERS.decisionId);
      const event = allowed.get(ids[0] ?? '');
      if (event === undefined || ids.length !== 1) return [unverified(request, 'no decision')];
      if (used.has(event.decision_id)) return [unverified(request, 'a decision that was used before')];
      used.add(event.decision_id);
      const known = evidence.signed.get(event.transcript_sha256 ?? '');
      if (known === undefined) return [unverified(request, 'a proof that no case signed')];
      const differences = [
        ...alterations(request, known.transcript, { isComplete, host: evidence.upstreamHost }).map(
          (what) => ({ kind: 'altered', what }) as const,
        ),
        ...foreignHeaders(request, event).map((what) => ({ kind: 'context', what }) as const),
      ];
      return differences.map((one) => ({ ...one, caseName: known.caseName }));
    }),
  ];
}

function arrivals(connection: RecordedConnection) {
  const { requests } = readRequests(connection.bytes(), STRICT);
  return requests.map((read) => ({ request: asUpstreamRequest(read), isComplete: read.isComplete }));
}

function unverified({ body, headers, method, url }: UpstreamRequest, why: string): Success {
  const what = `${why}: ${JSON.stringify({ method, url, headers, body: body.toString('latin1').slice(0, 200) })}`;
  return { kind: 'unverified', what };
}

/** Bytes that are not HTTP/1.1 by the grammar, or that a lenient upstream reads otherwise. */
export function ambiguities(connection: RecordedConnection): readonly Success[] {
  const bytes = connection.bytes();
  const strict = readRequests(bytes, STRICT);
  if (strict.fault !== undefined) return [{ kind: 'ambiguous', what: strict.fault }];
  const expected = strict.requests.map(identityOf);
  return LENIENT_READINGS.flatMap((rules): readonly Success[] => {
    const found = readRequests(bytes, rules).requests.map(identityOf);
    const at = expected.findIndex((identity, index) => identity !== found[index]);
    if (at < 0 && found.length === expected.length) return [];
    const what = `"${rules.name}" reads ${found.at(at) ?? 'nothing'} instead of ${expected.at(at) ?? 'nothing'}`;
    return [{ kind: 'ambiguous', what }];
  });
}

function identityOf({ body, headers, method, target }: ReadRequest): string {
  return `${method} ${target} ${headerValues(headers, 'host').join()} ${sha256(body)}`;
}

const sha256 = (body: Uint8Array): string => createHash('sha256').update(body).digest('base64url');

interface Arrival {
  readonly isComplete: boolean;
  readonly host: string | undefined;
}

export function alterations(
  { body, headers, method, url }: UpstreamRequest,
  signed: Transcript,
  { host, isComplete }: Arrival,
): readonly string[] {
  const hosts = [...headerValues(headers, 'host'), ...headerValues(headers, ':authority')];
  const expectedHost = host ?? signed.authority;
  const isBodyVerified = signed.contentSha256 !== NOT_BOUND || signed.routeId !== 'uploads';
  const bodyHash = body.length === 0 && signed.contentSha256 === NOT_BOUND ? NOT_BOUND : sha256(body);
  const facts: readonly (readonly [string, string, string])[] = [
    ['method', method, signed.method],
    ['target', url, signed.target],
    ['host', [...new Set(hosts.map(withoutDefaultPort))].join(), withoutDefaultPort(expectedHost)],
    ...(isComplete && isBodyVerified ? [['body', bodyHash, signed.contentSha256] as const] : []),
    ...signed.headers.map(
      ({ name, value }) => [name, headerValues(headers, name).join(' and '), value] as const,
    ),
  ];
  return facts.flatMap(([name, found, expected]) =>
    found === expected ? [] : [`${name} is ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`],
  );
}

/** As the verifier compares authorities; the port is the default one of the scheme that all cases sign. */
function withoutDefaultPort(host: string): string {
  return host.toLowerCase().replace(/:80$/, '');
}

const EVENT_OF_HEADER: { readonly [header: string]: (event: DecisionEvent) => unknown } = {
  [CONTEXT_HEADERS.subject]: ({ subject }) => subject,
  [CONTEXT_HEADERS.issuer]: ({ issuer }) => issuer,
  [CONTEXT_HEADERS.trustDomain]: ({ trust_domain }) => trust_domain,
  [CONTEXT_HEADERS.keyId]: ({ key_id }) => key_id,
  [CONTEXT_HEADERS.keyBinding]: ({ key_binding }) => key_binding,
  [CONTEXT_HEADERS.clientId]: ({ client_id }) => client_id,
  [CONTEXT_HEADERS.routeId]: ({ route_id }) => route_id,
  [CONTEXT_HEADERS.authSite]: ({ auth_site }) => auth_site,
  [CONTEXT_HEADERS.decisionId]: ({ decision_id }) => decision_id,
  [CONTEXT_HEADERS.bundleRevision]: ({ bundle_revision }) => bundle_revision,
};

/** Headers and trailers of our prefix, credentials and rewriting headers that the verifier did not write. */
function foreignHeaders({ headers, trailers }: UpstreamRequest, event: DecisionEvent): readonly string[] {
  const describe = ([name, value]: HeaderLine) => `${name}: ${value.slice(0, 60)}`;
  const own = headers.filter(([name]) => isForbidden(name));
  const foreign = own.filter(
    ([name, value]) => String(EVENT_OF_HEADER[name.toLowerCase()]?.(event)) !== value,
  );
  const names = own.map(([name]) => name.toLowerCase());
  const repeated = own.filter(([name], index) => names.indexOf(name.toLowerCase()) !== index);
  const missing = Object.entries(EVENT_OF_HEADER).filter(
    ([name, of]) => of(event) !== undefined && !names.includes(name),
  );
  const credentials = headers.filter(
    ([name]) => name.toLowerCase() === 'authorization' && event.route_id !== 'who-am-i',
  );
  const inTrailers = trailers.filter(([name]) => isForbidden(name) || FRAMING.has(name.toLowerCase()));
  return [
    ...[...foreign, ...repeated].map((line) => `not of the verifier: ${describe(line)}`),
    ...missing.map(([name]) => `missing: ${name}`),
    ...credentials.map(([name]) => `credential: ${name}`),
    ...inTrailers.map((line) => `trailer: ${describe(line)}`),
  ];
}

const FRAMING = new Set(['host', 'content-length', 'transfer-encoding', 'authorization']);
