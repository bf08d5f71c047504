/** The package `@proofgate/middleware`. Adapters have entries of their own: `/express`, `/fastify`, `/hono` and `/node`. */
export type {
  Admission,
  AdmissionGate,
  HeaderChange,
  HttpServer,
  ProblemResponse,
  SeenRequest,
} from '../../middleware/admission-gate.ts';
export type { Proof } from '../../middleware/proof.ts';
export { Verifier, VerifierError, type VerifierStatus } from './verifier.ts';
export type { VerifierOptions } from './verifier-options.ts';
