/** A conformance case: the messages of a caller to an enforcement point, and the expected result. */
import type { DetailOf, Reason } from '../../../protocol/reasons.ts';
import type { PassportHeader } from '../../../protocol/wire-names.ts';
import type { HeaderLine, WireRequest } from './exchange.ts';
import type { DpopChanges, HttpChanges } from './sign-standard-request.ts';
import type { SignedWireRequest, WireChanges } from './sign-wire-request.ts';

export const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** The decision of the verification core on the request as it was sent. */
export type Expected =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'denied'; readonly reason: Reason; readonly detail: string | undefined }
  /**
   * An invalid or ambiguous message. The point's HTTP parser or the verifier refuses it, or a lenient parser (RFC 9112
   * sections 2.2, 3, 5.2 and 6.3) forwards it as exactly the request that was signed.
   */
  | { readonly kind: 'malformed' };

export const ALLOWED: Expected = { kind: 'allowed' };
export const MALFORMED: Expected = { kind: 'malformed' };

export function denied<R extends Reason>(reason: R, detail?: DetailOf[R]): Expected {
  return { kind: 'denied', reason, detail };
}

export type WireMessage = WireRequest | RawBytes | RawLines;

/** Any bytes on an HTTP/1.1 connection. */
export interface RawBytes {
  readonly bytes: Uint8Array;
  /** Whether the caller then half closes the connection, because a server may wait for more. Default false. */
  readonly isCutOff?: boolean;
  /** The request that was signed. */
  readonly request: WireRequest;
}

/** Any header block on an HTTP/2 stream. */
export interface RawLines {
  /** The request that was signed. */
  readonly request: WireRequest;
  readonly lines: readonly HeaderLine[];
}

export const isWireRequest = (message: WireMessage): message is WireRequest => 'method' in message;

/** A case that needs one enrolled key, and a route that it may use; it can run against any deployment. */
export interface PublicCase {
  /** Unique and stable, because results are stored under it. */
  readonly name: string;
  readonly expected: Expected;
  /** Default both. */
  readonly protocols?: readonly Protocol[];
  /** Further needs of the case: a second route, whose method has a body, a key that signs its own passports, or a nonce. */
  readonly needs?: PublicNeed;
  /** Header of the route's passport that the case requires. Default: either. */
  readonly passportIn?: PassportHeader;
  /** Whether it shows a fault at this subject. Default: at each. */
  readonly appliesTo?: (subject: Subject) => boolean;
  /** Statuses besides {@link REJECTION_STATUSES} with which a server may refuse it without the verifier. */
  readonly rejections?: readonly number[];
  /**
   * Whether lenient parsers forward it as signed. `proofgate conformance` skips such a case, because it does not see
   * the forwarded request.
   */
  readonly mayPass?: boolean;
  /** Headers with which the denial says what the route requires, names in lower case. */
  readonly challenges?: readonly string[];
  /** Signs again at each call. Of several messages all except the last are allowed. */
  readonly make: (subject: Subject) => WireMessage | readonly WireMessage[];
}

/** Statuses with which HTTP parsers answer messages and lines that they refuse. */
export const REJECTION_STATUSES: readonly number[] = [400, 411, 413, 414, 417, 421, 426, 431, 501, 505];

/** `dpop_nonce`: the server has asked for one. */
export type PublicNeed = 'write_route' | 'own_passport' | 'dpop_nonce';

/** The caller and its routes. */
export interface Subject {
  /** Passport header of the route without a body. */
  readonly passportHeader: PassportHeader;
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  /** Path and query of the route without a body. */
  readonly target: string;
  /** Whether the path is one of the route's. */
  isOfRoute(path: string): boolean;
  /** A request to the route without a body, usually GET. */
  sign(changes?: SubjectChanges): SignedWireRequest;
  /** A request to the route whose method has a body. */
  signWrite(changes?: SubjectChanges): SignedWireRequest;
  /** As {@link sign} and {@link signWrite}, with an HTTP message signature. */
  signHttp(changes?: Targeted<HttpChanges>): WireRequest;
  signHttpWrite(changes?: Targeted<HttpChanges>): WireRequest;
  /** As {@link sign}, with a DPoP proof. */
  signDpop(changes?: Targeted<DpopChanges>): WireRequest;
}

type Targeted<Changes> = Changes & {
  /** Target that is signed and sent. */
  readonly target?: string;
};

export type SubjectChanges = Targeted<WireChanges>;

/** A request with one fault, for which the core denies it. */
export interface PublicFault<R extends Reason> {
  readonly what: string;
  readonly detail: DetailOf[R];
  readonly needs?: PublicNeed;
  readonly passportIn?: PassportHeader;
  readonly make: (subject: Subject) => WireRequest;
}

export function faultCase<R extends Reason>(reason: R, fault: PublicFault<R>): PublicCase {
  const { detail, make, needs, passportIn, what } = fault;
  const place = detail === undefined ? reason : `${reason}/${detail}`;
  const expected: Expected = { kind: 'denied', reason, detail };
  return {
    name: `${place}: ${what}`,
    expected,
    make,
    ...(needs && { needs }),
    ...(passportIn && { passportIn }),
  };
}
