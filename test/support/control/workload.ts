/** A workload inside this process: the client library's calls over real HTTP, without files or commands. */
import type { Enrollment } from '../../../src/caller/enroll/control-answers.ts';
import { ControlClient, type Submission } from '../../../src/caller/enroll/control-client.ts';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import {
  ServiceHttp,
  type ServiceReply,
  type ServiceRequest,
} from '../../../src/caller/service/service-http.ts';
import type { Verdict } from '../../../src/caller/service/service-verdict.ts';
import { Redacted } from '../../../src/protocol/redacted.ts';
import { generateSigningKey } from '../../../src/protocol/signing.ts';

const CALL = { timeoutMs: 60_000, stop: new AbortController().signal };

/** One connection to one Control. */
export class WorkloadConnection {
  readonly http: Pick<ServiceHttp, 'exchange'>;
  readonly close: () => Promise<void>;

  /** @param observe receives every exchange */
  constructor(
    controlUrl: string,
    observe: (request: ServiceRequest, reply: ServiceReply) => void = () => {},
  ) {
    const http = new ServiceHttp({ url: parseControlUrl(controlUrl), caPem: undefined });
    this.http = {
      async exchange(request) {
        const reply = await http.exchange(request);
        observe(request, reply);
        return reply;
      },
    };
    this.close = () => http.close();
  }
}

/** A new key, and what it takes to enroll it under one policy. */
export class Workload {
  readonly policy: string;
  readonly #key = generateSigningKey('Ed25519');
  /** The URL that is signed, whichever instance receives the request. */
  readonly #publicUrl: string;

  constructor(policy: string, publicUrl: string) {
    this.policy = policy;
    this.#publicUrl = publicUrl;
  }

  get thumbprint(): string {
    return this.#key.publicKey.thumbprint;
  }

  get privateKey() {
    return this.#key.privateKey;
  }

  /** Undefined when Control did not give one. @throws Error for a refusal */
  async challenge(connection: WorkloadConnection): Promise<Omit<Submission, 'workloadToken'> | undefined> {
    const verdict = await this.#client(connection).challenge('oidc_jwks', CALL);
    if (verdict.kind === 'refused') throw new Error(`a challenge was refused: ${verdict.code}`);
    return verdict.kind === 'done' ? verdict.value : undefined;
  }

  submit(submission: Submission, connection: WorkloadConnection): Promise<Verdict<Enrollment>> {
    return this.#client(connection).submit(submission, CALL);
  }

  poll(enrollmentId: string, connection: WorkloadConnection): Promise<Verdict<Enrollment>> {
    return this.#client(connection).poll(enrollmentId, CALL);
  }

  #client({ http }: WorkloadConnection): ControlClient {
    const target = { controlUrl: this.#publicUrl, policy: this.policy };
    return new ControlClient({ http, target, key: this.#key, nowMs: Date.now });
  }
}

export function submissionOf(
  challenge: Omit<Submission, 'workloadToken'>,
  workloadToken: string,
): Submission {
  return { ...challenge, workloadToken: new Redacted(workloadToken) };
}
