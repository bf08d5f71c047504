/** Client of Control's enrollment endpoints. Each call returns a verdict on whether Control processed the request. */

import { enrollmentText, POLL_SCHEME, pollText } from '../../protocol/enrollment.ts';
import type { Redacted } from '../../protocol/redacted.ts';
import { signMessage } from '../../protocol/signature.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { ServiceHttp, ServiceReply } from '../service/service-http.ts';
import { type Verdict, verdictOf } from '../service/service-verdict.ts';
import type { ChallengeRequest, EnrollmentSubmission } from '../service/wire-types.ts';
import {
  type Challenge,
  type Enrollment,
  type Readiness,
  readChallenge,
  readEnrollment,
  readReadiness,
} from './control-answers.ts';
import type { EnrollmentTarget } from './enrollment-state.ts';

/** Inputs of a submission. It can be repeated byte for byte, because Ed25519 signatures are deterministic. */
export interface Submission {
  readonly challengeId: string;
  readonly challenge: Redacted<string>;
  readonly workloadToken: Redacted<string>;
}

export interface ControlCall {
  readonly timeoutMs: number;
  readonly stop: AbortSignal;
}

export interface ControlClientParts {
  readonly http: Pick<ServiceHttp, 'exchange'>;
  readonly target: EnrollmentTarget;
  /** Ed25519. */
  readonly key: SigningKey;
  readonly nowMs: () => number;
}

const ENROLLMENTS = '/v1/enrollments';

export class ControlClient {
  readonly #parts: ControlClientParts;

  constructor(parts: ControlClientParts) {
    this.#parts = parts;
  }

  async challenge(provider: string, call: ControlCall): Promise<Verdict<Challenge>> {
    const { jwk } = this.#parts.key.publicKey;
    if (jwk.kty !== 'OKP') throw new TypeError('only Ed25519 keys are enrolled');
    const { kty, crv, x } = jwk;
    const body: ChallengeRequest = {
      policy: this.#parts.target.policy,
      provider,
      public_key: { kty, crv, x },
    };
    return verdictOf(await this.#post(`${ENROLLMENTS}/challenges`, body, call), readChallenge);
  }

  async submit(submission: Submission, call: ControlCall): Promise<Verdict<Enrollment>> {
    const { challengeId, challenge, workloadToken } = submission;
    const { key, target } = this.#parts;
    const text = enrollmentText({
      controlUrl: target.controlUrl,
      policyReference: target.policy,
      challengeId,
      challenge: challenge.reveal(),
      keyThumbprint: key.publicKey.thumbprint,
      workloadToken: workloadToken.reveal(),
    });
    const body: EnrollmentSubmission = {
      challenge_id: challengeId,
      workload_token: workloadToken.reveal(),
      signature: this.#sign(text),
    };
    return verdictOf(await this.#post(ENROLLMENTS, body, call), (answer) => this.#ownEnrollment(answer));
  }

  async poll(enrollmentId: string, call: ControlCall): Promise<Verdict<Enrollment>> {
    const reply = await this.#get(`${ENROLLMENTS}/${enrollmentId}`, enrollmentId, call);
    return verdictOf(reply, (answer) => {
      const enrollment = this.#ownEnrollment(answer);
      return enrollment?.enrollmentId === enrollmentId ? enrollment : undefined;
    });
  }

  async readiness(enrollmentId: string, call: ControlCall): Promise<Verdict<Readiness>> {
    const reply = await this.#get(`${ENROLLMENTS}/${enrollmentId}/readiness`, enrollmentId, call);
    return verdictOf(reply, readReadiness);
  }

  /** Rejects a response about another key. */
  #ownEnrollment(answer: string): Enrollment | undefined {
    const enrollment = readEnrollment(answer);
    if (enrollment?.state !== 'issued') return enrollment;
    return enrollment.key.fingerprint === this.#parts.key.publicKey.thumbprint ? enrollment : undefined;
  }

  #post(
    path: string,
    body: ChallengeRequest | EnrollmentSubmission,
    call: ControlCall,
  ): Promise<ServiceReply> {
    const text = JSON.stringify(body);
    return this.#parts.http.exchange({ method: 'POST', path, body: text, authorization: undefined, ...call });
  }

  #get(path: string, enrollmentId: string, call: ControlCall): Promise<ServiceReply> {
    const timeSeconds = Math.floor(this.#parts.nowMs() / 1000);
    const signature = this.#sign(pollText(enrollmentId, timeSeconds));
    const authorization = `${POLL_SCHEME} ${timeSeconds}.${signature}`;
    return this.#parts.http.exchange({ method: 'GET', path, body: undefined, authorization, ...call });
  }

  #sign(text: Uint8Array): string {
    return signMessage('Ed25519', this.#parts.key.privateKey, text).toString('base64url');
  }
}
