/**
 * A model of a small Auth Site that changes only through the domain's functions: sources with revisions, policies,
 * enrollments, keys, a clock. A step is what a service does in one transaction; a rejected step changes nothing.
 */
import type { EnrollmentState, PolicyState, SourceState } from '../../../src/control/contract/vocabulary.ts';
import {
  ENROLLMENT_MACHINE,
  KEY_MACHINE,
  keyExpirySeconds,
  keyStateAt,
  POLICY_MACHINE,
  type PolicyEvent,
  submissionProblem,
} from '../../../src/control/domain/enrollment-rules.ts';
import { move } from '../../../src/control/domain/machine.ts';
import {
  activationProblem,
  canStillBeEdited,
  holdsSlot,
  SOURCE_MACHINE,
  type SourceEvent,
} from '../../../src/control/domain/source-states.ts';

export interface Revision {
  readonly source: number;
  readonly number: number;
  state: SourceState;
}

export interface Policy {
  revision: Revision;
  readonly maxKeyLifetimeSeconds: number;
  readonly isManual: boolean;
  readonly subject: string;
  readonly maxKeysPerToken: number;
  state: PolicyState;
}

export interface Enrollment {
  readonly policy: Policy;
  /** That verified its token. */
  readonly revision: Revision;
  readonly publicKey: string;
  readonly token: Token;
  readonly acceptedAtSeconds: number;
  readonly keyExpiresAtSeconds: number;
  state: EnrollmentState;
}

export interface Token {
  readonly name: string;
  readonly expiresAtSeconds: number;
}

export interface Key {
  readonly enrollment: Enrollment;
  status: 'active' | 'revoked';
}

/** Result of a submission or approval, with the state at the time of the request. */
export interface Verdict {
  readonly problem: string | undefined;
  readonly policyState: PolicyState;
  readonly revisionState: SourceState;
  readonly anotherIsActive: boolean;
  readonly keyWasRevoked: boolean;
  readonly isBlocked: boolean;
  readonly otherKeysOfToken: number;
  readonly maxKeysPerToken: number;
}

export class SiteModel {
  readonly capacity: number;
  nowSeconds = 1_000_000;
  readonly revisions: Revision[] = [];
  readonly policies: Policy[] = [];
  readonly enrollments: Enrollment[] = [];
  readonly keys: Key[] = [];
  readonly revokedKeys = new Set<string>();
  readonly blockedSubjects = new Set<string>();
  readonly verdicts: Verdict[] = [];
  #sources = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  addSource(): void {
    this.revisions.push({ source: this.#sources++, number: 1, state: 'draft' });
  }

  /** Adds a draft revision. */
  addRevision(of: Revision): void {
    const number = this.ofSource(of).length + 1;
    this.revisions.push({ source: of.source, number, state: 'draft' });
  }

  ofSource({ source }: Revision): Revision[] {
    return this.revisions.filter((revision) => revision.source === source);
  }

  slotsUsed(): number {
    return new Set(this.revisions.filter(({ state }) => holdsSlot(state)).map(({ source }) => source)).size;
  }

  sourceEvent(revision: Revision, event: SourceEvent): void {
    const others = this.ofSource(revision).filter((other) => other !== revision);
    const anotherInProgress = others.some(({ state }) => state === 'activating' || state === 'publishing');
    if (event === 'superseded' || (event === 'resume' && anotherInProgress)) return;
    if (event === 'activate' || event === 'declare') {
      const problem = activationProblem({
        state: revision.state,
        event,
        detectedScope: 'scope',
        expectedScope: 'scope',
        anotherInProgress,
        sourceHoldsSlot: others.some(({ state }) => holdsSlot(state)),
        slotsUsed: this.slotsUsed(),
        capacity: this.capacity,
      });
      if (problem !== undefined) return;
    }
    const moved = move(SOURCE_MACHINE, revision.state, event);
    if (moved.kind === 'refused') return;
    revision.state = moved.to;
    if (event !== 'acknowledged') return;
    for (const policy of this.policies.filter((row) => row.revision === revision)) {
      this.policyEvent(policy, 'source_active');
    }
    for (const other of others) {
      const ended = move(SOURCE_MACHINE, other.state, 'superseded');
      if (ended.kind === 'moved') other.state = ended.to;
    }
  }

  addPolicy(policy: Omit<Policy, 'state'>): void {
    const { state } = policy.revision;
    if (state === 'retired' || state === 'removed') return;
    this.policies.push({ ...policy, state: state === 'active' ? 'active' : 'waiting' });
  }

  /** Binds the policy to a revision that is active or about to be. */
  rebind(policy: Policy, revision: Revision): void {
    if (!['activating', 'publishing', 'active'].includes(revision.state)) return;
    const event = revision.state === 'active' ? 'rebind' : 'rebind_waiting';
    const moved = move(POLICY_MACHINE, policy.state, event);
    if (moved.kind === 'refused') return;
    policy.state = moved.to;
    policy.revision = revision;
    this.#endEnrollments((row) => row.policy === policy && row.revision !== revision);
  }

  policyEvent(policy: Policy, event: PolicyEvent): void {
    if (event === 'rebind' || event === 'rebind_waiting') return;
    if (event === 'source_active' && policy.revision.state !== 'active') return;
    if (event === 'reactivate' && canStillBeEdited(policy.revision.state)) return;
    const moved = move(POLICY_MACHINE, policy.state, event);
    if (moved.kind === 'refused') return;
    policy.state = moved.to;
    if (moved.to === 'active') return;
    this.#endEnrollments((row) => row.policy === policy);
  }

  #endEnrollments(which: (row: Enrollment) => boolean): void {
    for (const enrollment of this.enrollments.filter(which)) {
      const ended = move(ENROLLMENT_MACHINE, enrollment.state, 'policy_ended');
      if (ended.kind === 'moved') enrollment.state = ended.to;
    }
  }

  submit(policy: Policy, publicKey: string, token: Token): void {
    if (token.expiresAtSeconds <= this.nowSeconds) return;
    if (this.#refuses(policy, publicKey, token)) return;
    const keyExpiresAtSeconds = keyExpirySeconds({
      tokenExpiresAtSeconds: token.expiresAtSeconds,
      acceptedAtSeconds: this.nowSeconds,
      maxKeyLifetimeSeconds: policy.maxKeyLifetimeSeconds,
    });
    const enrollment: Enrollment = {
      policy,
      revision: policy.revision,
      publicKey,
      token,
      acceptedAtSeconds: this.nowSeconds,
      keyExpiresAtSeconds,
      state: 'pending_approval',
    };
    this.enrollments.push(enrollment);
    if (!policy.isManual) this.#issue(enrollment);
  }

  approve(enrollment: Enrollment): void {
    if (move(ENROLLMENT_MACHINE, enrollment.state, 'approve').kind === 'refused') return;
    if (this.nowSeconds >= enrollment.keyExpiresAtSeconds) {
      this.decide(enrollment, 'expire');
    } else if (!this.#refuses(enrollment.policy, enrollment.publicKey, enrollment.token)) {
      this.#issue(enrollment);
    }
  }

  decide(enrollment: Enrollment, event: 'deny' | 'expire'): void {
    const moved = move(ENROLLMENT_MACHINE, enrollment.state, event);
    if (moved.kind === 'moved') enrollment.state = moved.to;
  }

  revoke(key: Key, blocksSubject: boolean): void {
    const state = keyStateAt(key.status, key.enrollment.keyExpiresAtSeconds, this.nowSeconds);
    const { publicKey, policy } = key.enrollment;
    // An expired key stays expired; its public key is banned, once.
    const isBan = state === 'expired' && !this.revokedKeys.has(publicKey);
    if (!isBan && move(KEY_MACHINE, state, 'revoke').kind === 'refused') return;
    for (const other of this.keys.filter(({ enrollment }) => enrollment.publicKey === publicKey)) {
      const otherState = keyStateAt(other.status, other.enrollment.keyExpiresAtSeconds, this.nowSeconds);
      if (move(KEY_MACHINE, otherState, 'revoke').kind === 'moved') other.status = 'revoked';
    }
    this.revokedKeys.add(publicKey);
    if (blocksSubject) this.blockedSubjects.add(policy.subject);
  }

  #refuses(policy: Policy, publicKey: string, token: Token): boolean {
    const anotherIsActive = this.ofSource(policy.revision).some(
      (other) => other !== policy.revision && other.state === 'active',
    );
    const problem = submissionProblem({
      policyState: policy.state,
      revisionState: policy.revision.state,
      supersededByActive: anotherIsActive,
      hasOtherIssuer: false,
      subjectIsBlocked: this.blockedSubjects.has(policy.subject),
      publicKeyWasRevoked: this.revokedKeys.has(publicKey),
      otherKeysOfToken: this.keysOf(token, publicKey).size,
      maxKeysPerToken: policy.maxKeysPerToken,
    });
    this.verdicts.push({
      problem,
      policyState: policy.state,
      revisionState: policy.revision.state,
      anotherIsActive,
      keyWasRevoked: this.revokedKeys.has(publicKey),
      isBlocked: this.blockedSubjects.has(policy.subject),
      otherKeysOfToken: this.keysOf(token, publicKey).size,
      maxKeysPerToken: policy.maxKeysPerToken,
    });
    return problem !== undefined;
  }

  /** Public keys with an issued or pending enrollment for the token, except one. */
  keysOf(token: Token, except?: string): ReadonlySet<string> {
    const rows = this.enrollments.filter(
      (row) => row.token.name === token.name && (row.state === 'issued' || row.state === 'pending_approval'),
    );
    return new Set(rows.map(({ publicKey }) => publicKey).filter((name) => name !== except));
  }

  #issue(enrollment: Enrollment): void {
    const moved = move(ENROLLMENT_MACHINE, enrollment.state, 'approve');
    if (moved.kind === 'refused') throw new Error(`issued in state ${enrollment.state}`);
    enrollment.state = moved.to;
    this.keys.push({ enrollment, status: 'active' });
  }
}
