/** What the demo has once it is set up: Control, a broker, a gateway with its sidecar, and callers with their keys. */
import type { BrokerPlane } from './broker-plane.ts';
import type { EnrollmentPlane } from './enrollment-plane.ts';
import type { DemoFiles } from './files.ts';
import type { EnrolledKey, Operator, Policies } from './onboarding.ts';
import type { ProofgateCli } from './proofgate-cli.ts';
import type { Gateway, Sidecar } from './request-plane.ts';
import type { Signer } from './signer-plane.ts';
import type { Caller } from './site.ts';

export interface DemoEnvironment extends EnrollmentPlane, BrokerPlane, Gateway, Sidecar, Signer {
  readonly files: DemoFiles;
  readonly cli: ProofgateCli;
  readonly operator: Operator;
  readonly keys: ReadonlyMap<Caller, EnrolledKey>;
  readonly policies: Policies;
}
