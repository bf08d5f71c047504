/**
 * What adapters need of a verifier. The package's own types are here, apart from everything else, so that its declarations name
 * nothing but themselves and Node.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Proof } from './proof.ts';

export type HttpServer = Server | TlsServer;

/** The method and target that the application sees at the adapter's place. */
export interface SeenRequest {
  readonly method: string | undefined;
  /** Path and query. An adapter passes an empty text when it cannot tell. */
  readonly target: string | undefined;
}

export type Admission =
  | {
      readonly kind: 'allowed';
      readonly proof: Proof;
      /** The passport's header value, on a route with `forward_authorization`; put back into the request's headers. */
      readonly authorization: string | undefined;
      /** The body, where the route binds it. The request's stream gives the same bytes. */
      readonly body: Buffer | undefined;
    }
  /** Answer with this; the handler must not run. */
  | { readonly kind: 'refused'; readonly problem: ProblemResponse }
  /** The client has gone: answer nothing, run nothing. */
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
