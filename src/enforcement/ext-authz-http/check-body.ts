/** Receives the bodies that a proxy forwards with authorization requests, within a limit for all of them together. */
import type { IncomingMessage } from 'node:http';
import { BodySpace, type HeldSpace, UNVERIFIED } from '../../process/request-body/body-space.ts';
import { readBody } from '../../process/request-body/read-body.ts';
import { deny } from '../../protocol/reasons.ts';
import type { Decision } from '../../verifier/decision/decide.ts';
import type { Verifier } from '../../verifier/verifier.ts';
import type { CheckedRequest } from './checked-request.ts';

export type CheckBody =
  | { readonly kind: 'decided'; readonly decision: Decision }
  /** `bytes` are undefined for a body that was not received whole. Call `end` after the decision. */
  | { readonly kind: 'received'; readonly bytes: Buffer | undefined; readonly end: () => void };

/** A longer body, or one of unknown length, is received only when the request would not be denied anyway. */
const SHORT_BYTES = 65_536;
const TOTAL_BYTES = 64 * 1024 * 1024;

export class CheckBodies {
  readonly #verifier: Pick<Verifier, 'awaitBody' | 'refuse'>;
  readonly #maxBodyBytes: number;
  readonly #space: BodySpace;

  constructor(verifier: Pick<Verifier, 'awaitBody' | 'refuse'>, maxBodyBytes: number) {
    this.#verifier = verifier;
    this.#maxBodyBytes = maxBodyBytes;
    this.#space = new BodySpace({ maxBytes: Math.max(TOTAL_BYTES, 4 * maxBodyBytes), maxBodyBytes });
  }

  /** @param checkOf the request with an unknown body */
  async receive(request: IncomingMessage, checkOf: () => CheckedRequest): Promise<CheckBody> {
    const lengthBytes = announcedBytes(request);
    if (lengthBytes === 0) return { kind: 'received', bytes: Buffer.alloc(0), end: () => undefined };
    const unverified = this.#space.open(UNVERIFIED);
    if (lengthBytes <= SHORT_BYTES && unverified.atLeast(lengthBytes)) {
      return this.#read(request, checkOf, unverified, () => unverified.release());
    }
    const { facts, fault, reservedName } = checkOf();
    // Denied in any case, and counted by its fault.
    if (fault !== undefined || reservedName !== undefined) return UNREAD;
    const awaited = this.#verifier.awaitBody(facts);
    if (awaited.kind === 'denied') return { kind: 'decided', decision: awaited };
    const held = this.#space.open(awaited.caller);
    return this.#read(request, checkOf, held, () => {
      awaited.end();
      held.release();
    });
  }

  async #read(
    request: IncomingMessage,
    checkOf: () => CheckedRequest,
    held: HeldSpace,
    end: () => void,
  ): Promise<CheckBody> {
    const read = await readBody(request, this.#maxBodyBytes, held);
    if (read.kind !== 'no_room') {
      return { kind: 'received', bytes: read.kind === 'read' ? read.bytes : undefined, end };
    }
    end();
    const decision = this.#verifier.refuse(checkOf().facts, OVERLOADED);
    return { kind: 'decided', decision };
  }
}

const UNREAD: CheckBody = { kind: 'received', bytes: undefined, end: () => undefined };
const OVERLOADED = deny('verifier_unavailable', 'overloaded');

/** Infinite when the length is not announced. */
function announcedBytes({ headers }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY;
  return Number(headers['content-length'] ?? 0);
}
