/** Submissions counted by what became of them: a state, or the code of a refusal. */
import type { EnrollmentSubmission } from '../control/api/contract/enrollment.ts';
import { Refusal } from '../control/domain/refusal.ts';
import type { PolicyTurn } from '../control/enrollment/submissions.ts';
import {
  ControlWorkloadEnrollments,
  type WorkloadEnrollmentsOptions,
} from '../control/enrollment/workload-enrollments.ts';

export class MeteredEnrollments extends ControlWorkloadEnrollments {
  readonly #count: (outcome: string) => void;

  constructor(options: WorkloadEnrollmentsOptions, count: (outcome: string) => void) {
    super(options);
    this.#count = count;
  }

  override async submit(submission: EnrollmentSubmission, takeTurn?: PolicyTurn) {
    try {
      const submitted = await super.submit(submission, takeTurn);
      this.#count(submitted.created ? submitted.enrollment.state : 'repeated');
      return submitted;
    } catch (error) {
      this.#count(error instanceof Refusal ? error.code : 'internal');
      throw error;
    }
  }
}
