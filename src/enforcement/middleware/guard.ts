/**
 * Admits requests of protected servers. An adapter calls {@link Guard.admit} where the application placed it; the
 * request was captured before.
 */
import type { IncomingMessage } from 'node:http';
import type { CallContext } from '../../process/connections/call-context.ts';
import { type ProblemResponse, problemOf, problemOfFault } from '../../process/http-proxy/problem.ts';
import { headerLines, requestHeadersOf } from '../../process/http-proxy/raw-headers.ts';
import { faultOf } from '../../process/http-proxy/request-faults.ts';
import { isWebSocketHandshake } from '../../process/http-proxy/websocket-handshake.ts';
import { joinSmallChunks } from '../../process/node-internals/small-chunks.ts';
import { BodySpace, type HeldSpace, UNVERIFIED } from '../../process/request-body/body-space.ts';
import { deny } from '../../protocol/reasons.ts';
import type { Origin } from '../../protocol/request-target.ts';
import type { AllowedDecision, ObservedDecision } from '../../verifier/decision/decide.ts';
import type { BodyState, RequestFacts } from '../../verifier/decision/facts/request-facts.ts';
import type { Verifier } from '../../verifier/verifier.ts';
import { internalDenial, problemOfDenial } from '../answers/denial-problem.ts';
import type { Admission, SeenRequest } from './admission-gate.ts';
import {
  type CapturedRequest,
  captureRequest,
  type Emitted,
  isHostOf,
  showCredentials,
} from './captured-request.ts';
import { CopiedAttributes, type Proof } from './proof.ts';
import { isBodyTouched, readBody } from './request-body.ts';

export interface GuardOptions {
  readonly verifier: Verifier;
  /** The only origin that the protected servers serve. */
  readonly externalOrigin: Origin;
  /** Maximum size of a bound body. */
  readonly maxBodyBytes: number;
  /** Reports a request that reached an adapter but did not come from a protected server. */
  readonly onUnprotected: () => void;
  /** Reports a request whose bound body other code has read or begun to read; it is denied. */
  readonly onBodyTaken: () => void;
  /** Reports an internal error; the request has been denied. */
  readonly onInternalError: (error: unknown) => void;
}

export type UpgradeAdmission =
  | Extract<Admission, { kind: 'refused' }>
  /** The connection must end when its key is no longer valid. */
  | { readonly kind: 'upgraded'; readonly isStillValid: () => boolean };

/** A longer body, or one of unknown length, is received only when the request would not be denied anyway. */
const SHORT_BODY_BYTES = 64 * 1024;
/** Limit for bodies that are being received, over all requests. */
const ALL_BODIES_BYTES = 64 * 1024 * 1024;
const OVERLOADED = deny('verifier_unavailable', 'overloaded');

export class Guard {
  readonly origin: Origin;
  readonly #options: GuardOptions;
  readonly #captured = new WeakMap<IncomingMessage, CapturedRequest>();
  readonly #admissions = new WeakMap<IncomingMessage, Promise<Admission>>();
  readonly #upgrades = new WeakMap<IncomingMessage, Promise<UpgradeAdmission>>();
  readonly #bodies: BodySpace;
  #isClosed = false;

  constructor(options: GuardOptions) {
    this.#options = options;
    const { maxBodyBytes } = options;
    this.#bodies = new BodySpace({ maxBytes: Math.max(ALL_BODIES_BYTES, 4 * maxBodyBytes), maxBodyBytes });
    this.origin = options.externalOrigin;
  }

  /**
   * Captures a request as the server received it, and cleans its headers. A request that is emitted again keeps its
   * first capture.
   */
  capture(request: IncomingMessage, emitted: Emitted): CapturedRequest {
    const known = this.#captured.get(request);
    if (known !== undefined) return known;
    const { verifier } = this.#options;
    const captured = captureRequest(request, this.origin, emitted, (rawHeaders) =>
      verifier.credentialsIn({ headers: requestHeadersOf(rawHeaders) }),
    );
    this.#captured.set(request, captured);
    if (captured.announcesBody) joinSmallChunks(request);
    return captured;
  }

  /** Never rejects. The same request is verified once, however often an adapter asks. */
  admit(request: IncomingMessage, look: () => SeenRequest): Promise<Admission> {
    return this.#admitSafely(request, () => this.#admit(request, look));
  }

  async #admitSafely(request: IncomingMessage, admit: () => Promise<Admission>): Promise<Admission> {
    const admission = await admit().catch((error: unknown) => {
      this.#options.onInternalError(error);
      return refused(internalProblem(), request);
    });
    if (admission.kind !== 'refused' || this.#captured.get(request)?.isAnswered() !== true) return admission;
    // A denial cannot follow another answer, so the connection must end.
    request.socket.destroy();
    return GONE;
  }

  async #admit(request: IncomingMessage, look: () => SeenRequest): Promise<Admission> {
    const captured = this.#captured.get(request);
    if (captured === undefined) {
      this.#options.onUnprotected();
      return refused(problemOfDenial(internalDenial('unprotected')), request);
    }
    const unknown = { ...this.#factsOf(captured), ...UNKNOWN_REQUEST_LINE };
    if (!isAsReceived(captured, request, look())) return this.#decide(unknown, request);
    const admitting = this.#admissions.get(request) ?? this.#admitOnce(request, captured);
    this.#admissions.set(request, admitting);
    const admission = await admitting;
    // Other middleware may continue while this waits for a body or the replay store.
    const isStill = !passes(admission) || isAsReceived(captured, request, look());
    return isStill ? admission : this.#decide(unknown, request);
  }

  async #admitOnce(request: IncomingMessage, captured: CapturedRequest): Promise<Admission> {
    const fault = faultIn(request, captured);
    if (fault !== undefined) return refused(fault, request);
    const facts = this.#factsOf(captured);
    if (!captured.announcesBody)
      return this.#decide({ ...facts, body: bodyless(captured) }, request, captured);
    const { verifier } = this.#options;
    if (!verifier.bindsBody(facts) || captured.hasUpgrade) return this.#decide(facts, request, captured);
    if (isBodyTouched(request)) {
      this.#options.onBodyTaken();
      return this.#decide(facts, request, captured);
    }
    return this.#admitWithBody(facts, request, captured);
  }

  async #admitWithBody(
    facts: RequestFacts,
    request: IncomingMessage,
    captured: CapturedRequest,
  ): Promise<Admission> {
    const { maxBodyBytes, verifier } = this.#options;
    const lengthBytes = announcedBytes(facts);
    const isShort = lengthBytes <= SHORT_BODY_BYTES && !captured.expectsContinue;
    const unverified = this.#bodies.open(UNVERIFIED);
    if (isShort && lengthBytes <= maxBodyBytes && unverified.atLeast(lengthBytes)) {
      return this.#readAndDecide(facts, request, captured, unverified).finally(() => unverified.release());
    }
    const awaited = verifier.awaitBody(facts, callOf(request, captured));
    if (awaited.kind === 'denied') return refused(problemOfDenial(awaited), request);
    const held = this.#bodies.open(awaited.caller);
    try {
      if (lengthBytes > maxBodyBytes && Number.isFinite(lengthBytes)) return refused(TOO_LARGE, request);
      return await this.#readAndDecide(facts, request, captured, held);
    } finally {
      awaited.end();
      held.release();
    }
  }

  async #readAndDecide(
    facts: RequestFacts,
    request: IncomingMessage,
    captured: CapturedRequest,
    held: HeldSpace,
  ): Promise<Admission> {
    const body = await readBody(request, this.#options.maxBodyBytes, held);
    switch (body.kind) {
      case 'aborted':
        return GONE;
      case 'too_large':
        return refused(TOO_LARGE, request);
      case 'no_room':
        return this.#refuse(facts, request, captured);
      case 'read': {
        const { bytes } = body;
        const admission = await this.#decide({ ...facts, body: { kind: 'exact', bytes } }, request, captured);
        return passes(admission) ? { ...admission, body: bytes } : admission;
      }
    }
  }

  #refuse(facts: RequestFacts, request: IncomingMessage, captured: CapturedRequest): Admission {
    const decision = this.#options.verifier.refuse(facts, OVERLOADED, callOf(request, captured));
    return refused(decision.kind === 'denied' ? problemOfDenial(decision) : internalProblem(), request);
  }

  /** From now on every request is denied. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Verifies the handshake of a WebSocket, which no adapter receives, and refuses every other upgrade. Never rejects.
   * It verifies each request once, because Fastify's further servers emit upgrades again at the first one.
   */
  admitUpgrade(request: IncomingMessage): Promise<UpgradeAdmission> {
    const admission = this.#upgrades.get(request) ?? this.#admitUpgradeOnce(request);
    this.#upgrades.set(request, admission);
    return admission;
  }

  async #admitUpgradeOnce(request: IncomingMessage): Promise<UpgradeAdmission> {
    try {
      return await this.#admitUpgrade(request);
    } catch (error) {
      this.#options.onInternalError(error);
      return refused(internalProblem(), request);
    }
  }

  async #admitUpgrade(request: IncomingMessage): Promise<UpgradeAdmission> {
    const { verifier } = this.#options;
    const captured = this.capture(request, { expectsContinue: false, response: undefined });
    const fault = faultIn(request, captured);
    if (fault !== undefined) return refused(fault, request);
    const facts = { ...this.#factsOf(captured), body: NO_BODY };
    const { announcesBody: hasBody, method, rawHeaders } = captured;
    const { httpVersion } = request;
    const lines = headerLines(rawHeaders);
    const isHandshake = isWebSocketHandshake({ httpVersion, method, hasBody, lines });
    if (!isHandshake || !verifier.allowsWebSocket(facts)) return refused(UPGRADE_REFUSED, request);
    if (this.#isClosed) return refused(internalProblem(), request);
    const decision = await verifier.check(facts, callOf(request, captured));
    if (decision.kind === 'denied') return refused(problemOfDenial(decision), request);
    // Unreachable: an upgrade of an unverified caller is denied here.
    if (decision.kind === 'observed') return refused(internalProblem(), request);
    // The bundle may have changed since.
    if (decision.route.upgrade !== 'websocket') return refused(UPGRADE_REFUSED, request);
    allow(decision, request, captured);
    return { kind: 'upgraded', isStillValid: () => !this.#isClosed && verifier.hasValidKey(decision) };
  }

  async #decide(
    facts: RequestFacts,
    request: IncomingMessage,
    captured?: CapturedRequest,
  ): Promise<Admission> {
    if (this.#isClosed) return refused(internalProblem(), request);
    const decision = await this.#options.verifier.check(facts, callOf(request, captured));
    if (decision.kind === 'denied') return refused(problemOfDenial(decision), request);
    // Only a request with an unknown request line has no capture here: it matches no route, and no path.
    if (captured === undefined) return refused(internalProblem(), request);
    return decision.kind === 'observed'
      ? passOn(decision, request, captured)
      : allow(decision, request, captured);
  }

  #factsOf({ hasUpgrade, method, rawHeaders, target }: CapturedRequest): RequestFacts {
    const { authority, scheme } = this.origin;
    const headers = requestHeadersOf(rawHeaders);
    const host = headers.lookup('host');
    const isOurs = host.kind === 'single' && isHostOf(this.origin, host.value);
    const head = { method, scheme, authority: isOurs ? authority : '', target, headers };
    const facts = { ...head, body: UNKNOWN_BODY, removesProofs: true };
    return hasUpgrade || method === 'CONNECT' ? facts : { ...facts, upgrade: 'none' };
  }
}

function isAsReceived(captured: CapturedRequest, request: IncomingMessage, seen: SeenRequest): boolean {
  const { method, target } = captured;
  return request.method === method && seen.method === method && seen.target === target;
}

/** A request line that matches no route. */
const UNKNOWN_REQUEST_LINE = { method: '', target: '' };
const UNKNOWN_BODY: BodyState = { kind: 'unknown' };
const NO_BODY: BodyState = { kind: 'none' };
const TOO_LARGE = problemOf(413, 'urn:proofgate:fault:body_too_large', 'The body is too large');
const UPGRADE_REFUSED = problemOf(
  400,
  'urn:proofgate:fault:upgrade_refused',
  'This upgrade is not supported',
);
const GONE: Admission = { kind: 'gone' };

/** After an upgrade, bytes may follow that belong to no body. */
function bodyless({ hasUpgrade }: CapturedRequest): BodyState {
  return hasUpgrade ? UNKNOWN_BODY : NO_BODY;
}

/** Infinite when the length is not announced. */
function announcedBytes({ headers }: RequestFacts): number {
  const length = headers.lookup('content-length');
  return length.kind === 'single' ? Number(length.value) : Number.POSITIVE_INFINITY;
}

const FIXED = { configurable: false, enumerable: true, writable: false };

function allow(decision: AllowedDecision, request: IncomingMessage, captured: CapturedRequest): Admission {
  const proof = proofOf(decision);
  const changedHeaders = showCredentials(request, captured, decision);
  // Makes both immutable, so that neither a method override nor a second verifier can change them.
  Object.defineProperties(request, {
    method: { value: captured.method, ...FIXED },
    proof: { value: proof, ...FIXED },
  });
  return { kind: 'allowed', proof, changedHeaders, body: undefined };
}

type Passing = Extract<Admission, { kind: 'allowed' | 'observed' }>;

/** Whether a handler sees the request. */
function passes(admission: Admission): admission is Passing {
  return admission.kind === 'allowed' || admission.kind === 'observed';
}

/** Lets the request pass without identity. Like that of an allowed one, its method cannot be changed, nor a proof be added. */
function passOn(decision: ObservedDecision, request: IncomingMessage, captured: CapturedRequest): Admission {
  const { decisionId, denial, route } = decision;
  const changedHeaders = showCredentials(request, captured, decision);
  const { detail, reason } = denial;
  const observed = Object.freeze({ reason, detail, routeId: route?.routeId, decisionId });
  Object.defineProperties(request, {
    method: { value: captured.method, ...FIXED },
    proof: { value: undefined, ...FIXED },
    observed: { value: observed, ...FIXED },
  });
  return { kind: 'observed', observed, changedHeaders, body: undefined };
}

/** Ends a connection whose request was not read to its end: the rest of it must not count as a request. */
function refused(
  problem: ProblemResponse,
  { complete }: IncomingMessage,
): Extract<Admission, { kind: 'refused' }> {
  const headers = complete ? problem.headers : [...problem.headers, ['connection', 'close'] as const];
  return { kind: 'refused', problem: { ...problem, headers } };
}

function faultIn({ httpVersion }: IncomingMessage, captured: CapturedRequest): ProblemResponse | undefined {
  const { method, rawHeaders } = captured;
  const fault = faultOf({ httpVersion, method, lines: headerLines(rawHeaders) });
  return fault && problemOfFault(fault);
}

function internalProblem(): ProblemResponse {
  return problemOfDenial(internalDenial());
}

/** A request that is already answered counts as gone, because its handler must not run. */
function callOf({ socket }: IncomingMessage, captured: CapturedRequest | undefined): CallContext {
  return {
    waitedTooLong: false,
    trace: undefined,
    traceparent: () => undefined,
    isGone: () => socket.destroyed || captured?.isAnswered() === true,
  };
}

function proofOf({ caller, decisionId, proofFormat, route, snapshot }: AllowedDecision): Proof {
  return Object.freeze({
    subject: caller.subject,
    issuer: caller.issuer,
    trustDomain: caller.trustDomain,
    keyId: caller.keyId,
    keyBinding: caller.keyBinding,
    clientId: caller.derivedKey?.client.clientId,
    routeId: route.routeId,
    authSite: snapshot.authSite,
    decisionId,
    format: proofFormat,
    bundleRevision: snapshot.revision,
    provenance: new CopiedAttributes(caller.provenance),
    context: new CopiedAttributes(caller.context),
  });
}
