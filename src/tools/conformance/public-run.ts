/** Runs the public cases against a deployment and compares its answers with what the verification core decides. */
import { connect } from 'node:tls';
import type { ProofFormat } from '../../protocol/proof-format.ts';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { DPOP_NONCE_HEADER, REASON_HEADER } from '../../protocol/wire-names.ts';
import { CASES_OF_FORMAT } from './public-cases.ts';
import {
  type Expected,
  isWireRequest,
  type Protocol,
  type PublicCase,
  type PublicNeed,
  REJECTION_STATUSES,
  type Subject,
  type WireMessage,
} from './wire/conformance-case.ts';
import {
  headerValues,
  NoResponse,
  NotHttp,
  type WireAddress,
  type WireRequest,
  type WireResponse,
} from './wire/exchange.ts';
import { http1Client, sendBytes } from './wire/http1.ts';
import { http2Client, sendLines } from './wire/http2.ts';

export interface Deployment {
  readonly address: WireAddress;
  readonly subject: Subject;
  /** Format of the proofs, which the route accepts. */
  readonly proof: ProofFormat;
  /** Needs of cases that the subject satisfies. */
  readonly has: ReadonlySet<PublicNeed>;
  /** Uses the server's nonce for DPoP proofs from now on. */
  readonly takeNonce: (nonce: string) => void;
  /** Limit of each exchange. */
  readonly timeoutMs: number;
}

/**
 * `as_expected`: denied for the reason of the core; `otherwise`: for another one; `rejected`: refused by an HTTP parser.
 * The others fail the run. `unclear`: an answer without a reason of Proofgate, perhaps the API's. `unchallenged`: denied as
 * expected, without the headers that say what the route requires.
 */
export type Verdict =
  | 'as_expected'
  | 'otherwise'
  | 'rejected'
  | 'allowed'
  | 'unclear'
  | 'unchallenged'
  | 'silent';

export const FAILURES: ReadonlySet<Verdict> = new Set<Verdict>([
  'allowed',
  'unclear',
  'unchallenged',
  'silent',
]);

export interface CaseResult {
  readonly protocol: Protocol;
  readonly name: string;
  readonly verdict: Verdict;
  /** `bundle_route_missing/no_match`, `malformed`. */
  readonly expected: string;
  /** `403 bundle_route_missing/no_match`, `400`, `closed`, `silent`. Contains nothing of the request. */
  readonly answer: string;
}

export function casesFor(protocol: Protocol, { has, proof, subject }: Deployment): readonly PublicCase[] {
  return CASES_OF_FORMAT[proof].filter(
    ({ appliesTo, mayPass, needs, passportIn, protocols }) =>
      mayPass !== true &&
      (protocols?.includes(protocol) ?? true) &&
      (needs === undefined || has.has(needs)) &&
      (passportIn === undefined || passportIn === subject.passportHeader) &&
      (appliesTo?.(subject) ?? true),
  );
}

/** The answer to the request that must be allowed, and whether it was. Its second copy is a case of a replay. */
export interface AllowedExchange {
  readonly isAllowed: boolean;
  readonly answer: string;
  /** Why there was no answer; undefined when there was one. */
  readonly noAnswer: string | undefined;
  readonly replay: CaseResult;
}

export async function sendAllowed(protocol: Protocol, deployment: Deployment): Promise<AllowedExchange> {
  let request = signedBy(deployment);
  let first = await send(protocol, request, deployment);
  const nonce = first instanceof Error ? undefined : headerValues(first.headers, DPOP_NONCE_HEADER)[0];
  if (nonce !== undefined && deployment.proof === 'dpop') {
    deployment.takeNonce(nonce);
    request = signedBy(deployment);
    first = await send(protocol, request, deployment);
  }
  const second = await send(protocol, request, deployment);
  const expected: Expected = { kind: 'denied', reason: 'jti_replay', detail: undefined };
  return {
    isAllowed: !(first instanceof Error) && reasonOf(first) === undefined && first.status < 400,
    answer: textOf(first),
    noAnswer: first instanceof NoResponse ? first.message : undefined,
    replay: resultOf(protocol, { name: 'jti_replay: the allowed request again', expected }, second),
  };
}

function signedBy({ has, proof, subject }: Deployment): WireRequest {
  switch (proof) {
    case 'transcript-v1':
      return subject.sign().request;
    case 'http-message-signatures':
      return subject.signHttp({ hasPassport: !has.has('own_passport') });
    case 'dpop':
      return subject.signDpop();
  }
}

export async function runCase(
  protocol: Protocol,
  one: PublicCase,
  deployment: Deployment,
): Promise<CaseResult> {
  const made = one.make(deployment.subject);
  const messages: readonly WireMessage[] = isSequence(made) ? made : [made];
  let answer: Answer | undefined;
  for (const message of messages) answer = await send(protocol, message, deployment);
  if (answer === undefined) throw new Error('the case sends nothing');
  return resultOf(protocol, one, answer);
}

function isSequence(made: WireMessage | readonly WireMessage[]): made is readonly WireMessage[] {
  return Array.isArray(made);
}

type Answer = WireResponse | NoResponse | NotHttp;

async function send(
  protocol: Protocol,
  message: WireMessage,
  { address, timeoutMs }: Deployment,
): Promise<Answer> {
  try {
    if (isWireRequest(message)) {
      const client = protocol === 'HTTP/1.1' ? http1Client : http2Client;
      return await client(address, timeoutMs).send(message);
    }
    return 'bytes' in message
      ? await sendBytes(address, message.bytes, message.request.method, timeoutMs, message.isCutOff)
      : await sendLines(address, message.request, message.lines, timeoutMs);
  } catch (error) {
    if (error instanceof NoResponse || error instanceof NotHttp) return error;
    throw error;
  }
}

/** Traefik cannot answer 400: deploy/traefik/proofgate.yaml redirects a target that it must refuse to this address. */
const TARGET_REFUSED = 'urn:proofgate:target-not-visible-ascii';

type Outline = Pick<PublicCase, 'name' | 'expected' | 'rejections' | 'challenges'>;

function resultOf(protocol: Protocol, { name, expected, ...more }: Outline, answer: Answer): CaseResult {
  const expectedText = textOfExpected(expected);
  return {
    protocol,
    name,
    expected: expectedText,
    answer: textOf(answer),
    verdict: verdictOf(expectedText, answer, more),
  };
}

function verdictOf(
  expected: string,
  answer: Answer,
  { challenges = [], rejections = [] }: Pick<PublicCase, 'rejections' | 'challenges'>,
): Verdict {
  if (answer instanceof NoResponse) return answer.kind === 'timeout' ? 'silent' : 'rejected';
  if (answer instanceof NotHttp) return 'unclear';
  const { headers, status } = answer;
  if (headerValues(headers, 'location').join() === TARGET_REFUSED) return 'rejected';
  // Whatever headers the API sends, the request was allowed.
  if (status < 400) return 'allowed';
  const reason = reasonOf(answer);
  // An enforcement point that loses the body of a denial shows only the reason.
  if (reason !== undefined) {
    if (expected !== reason && !expected.startsWith(`${reason}/`)) return 'otherwise';
    const isChallenged = challenges.every((name) => headerValues(headers, name).length > 0);
    return isChallenged ? 'as_expected' : 'unchallenged';
  }
  return [...REJECTION_STATUSES, ...rejections].includes(status) ? 'rejected' : 'unclear';
}

function textOfExpected(expected: Expected): string {
  if (expected.kind !== 'denied') return expected.kind;
  return expected.detail === undefined ? expected.reason : `${expected.reason}/${expected.detail}`;
}

function textOf(answer: Answer): string {
  if (answer instanceof NoResponse) return answer.kind === 'timeout' ? 'silent' : 'closed';
  if (answer instanceof NotHttp) return 'not HTTP';
  const reason = reasonOf(answer);
  return reason === undefined ? String(answer.status) : `${answer.status} ${reason}`;
}

const REASON = /^[a-z_]{1,64}$/;
const DETAIL = /^[a-z0-9._-]{1,140}$/;

/** The reason, with the detail if the answer's body has it; undefined when the answer is not Proofgate's. */
function reasonOf({ body, headers }: WireResponse): string | undefined {
  const [reason = ''] = headerValues(headers, REASON_HEADER);
  if (!REASON.test(reason)) return undefined;
  const detail = detailIn(body);
  return detail === undefined ? reason : `${reason}/${detail}`;
}

function detailIn(body: Buffer): string | undefined {
  if (!body.includes('urn:proofgate:denial:')) return undefined;
  try {
    const problem = parseStrictJson(body.toString('utf8'));
    const detail =
      typeof problem === 'object' && problem !== null && 'detail' in problem ? problem.detail : '';
    return typeof detail === 'string' && DETAIL.test(detail) ? detail : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a server that speaks TLS also speaks HTTP/2. Also false when it cannot be reached. */
export function speaksHttp2({ host, port, tls }: WireAddress, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...tls, host, port, ALPNProtocols: ['h2', 'http/1.1'], timeout: timeoutMs });
    const finish = (speaks: boolean) => {
      socket.destroy();
      resolve(speaks);
    };
    socket.on('secureConnect', () => finish(socket.alpnProtocol === 'h2'));
    socket.on('timeout', () => finish(false));
    socket.on('error', () => finish(false));
  });
}
