/**
 * The part of a verifier that adapters need. The package's types are in this separate file, so that its declarations
 * refer only to themselves and to Node.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Observed, Proof } from './proof.ts';

export type HttpServer = Server | TlsServer;

/** The method and target that the application sees where the adapter runs. */
export interface SeenRequest {
  readonly method: string | undefined;
  /** Path and query. An adapter that does not know them passes an empty text. */
  readonly target: string | undefined;
}

/** A header that handlers see otherwise than code before the adapter: its lines, none if it is removed. */
export interface HeaderChange {
  /** Lower case. */
  readonly name: string;
  readonly values: readonly string[];
}

export type Admission =
  | {
      readonly kind: 'allowed';
      readonly proof: Proof;
      readonly changedHeaders: readonly HeaderChange[];
      /** The body, if the route binds it. The request's stream has the same bytes. */
      readonly body: Buffer | undefined;
    }
  /** The handler runs, but the request has no verified caller. Only for a verifier with `allowObserve` or `allowObserveUnmatched`. */
  | {
      readonly kind: 'observed';
      readonly observed: Observed;
      readonly changedHeaders: readonly HeaderChange[];
      /** As of an allowed request. */
      readonly body: Buffer | undefined;
    }
  /** The adapter answers with this problem; the handler must not run. */
  | { readonly kind: 'refused'; readonly problem: ProblemResponse }
  /** The client has disconnected: the adapter neither answers nor runs the handler. */
  | { readonly kind: 'gone' };

/** Problem details (RFC 9457). */
export interface ProblemResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

export interface AdmissionGate {
  /** Captures requests before the application sees them. Call it before the server listens. */
  protect<S extends HttpServer>(server: S): S;
  /**
   * Verifies a request of a protected server. Never rejects.
   * @param look called before and after the verification
   */
  admit(request: IncomingMessage, look: () => SeenRequest): Promise<Admission>;
}
