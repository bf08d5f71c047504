/** Does not compile when callers send, or keep, what the schemas of Control and the broker do not allow. */
import type * as broker from '../../../src/broker/broker-contract.ts';
import type * as caller from '../../../src/caller/service/wire-types.ts';
import type * as control from '../../../src/control/contract/enrollment-contract.ts';

type Fits<Sent extends Taken, Taken> = Sent;

export type Checked = [
  Fits<caller.ChallengeRequest, control.ChallengeRequest>,
  Fits<caller.EnrollmentSubmission, control.EnrollmentSubmission>,
  Fits<caller.CallerProof, broker.CallerProof>,
  Fits<broker.CallerProof['kind'], caller.CallerProof['kind']>,
  Fits<caller.PassportRequest, broker.PassportRequest>,
  Fits<control.EnrolledKey, caller.EnrolledKey>,
  Fits<caller.EnrolledKey, control.EnrolledKey>,
  Fits<control.EnrolledProfile, caller.EnrolledProfile>,
  Fits<caller.EnrolledProfile, control.EnrolledProfile>,
];
