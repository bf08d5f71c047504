/**
 * A fake Control with the enrollment endpoints over real HTTP and the contract of docs/operate/control.md. Challenges are bound to
 * policy and key, and only a valid signature consumes one, once. The same submission gets the same enrollment; tokens are
 * checked in full; polling uses Proofgate-Key within its window. It keeps everything in memory and records its requests for
 * tests.
 */
import { hash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { generateKeyPair, jwtVerify, SignJWT } from 'jose';
import {
  enrollmentText,
  POLL_SCHEME,
  POLL_WINDOW_SECONDS,
  pollText,
} from '../../../src/protocol/enrollment.ts';
import { importPublicJwk } from '../../../src/protocol/import-public-key.ts';
import type { PublicKey } from '../../../src/protocol/public-key.ts';
import type { JsonObject } from '../../../src/protocol/strict-json.ts';
import { verifySignature } from '../../../src/protocol/verify-signature.ts';
import {
  type Answer,
  AUTH_SITE,
  describe,
  type FakeEnrollment,
  Problem,
  profile,
  readObject,
  text,
} from './control-enrollment-answers.ts';

export const POLICY = 'epr_7f3c9a';
const ISSUER = 'https://oidc.cluster.example';
const AUDIENCE = 'https://control.shop.example';
const SUBJECT = 'system:serviceaccount:prod:billing';

export interface FakeControlOptions {
  readonly approval?: 'automatic' | 'manual';
  readonly maxKeyLifetimeSeconds?: number;
  readonly challengeTtlSeconds?: number;
  readonly nowMs?: () => number;
  /** Control's public URL where clients reach it by another. */
  readonly publicUrls?: () => readonly string[];
}

interface Challenge {
  readonly policy: string;
  readonly key: PublicKey;
  readonly challenge: string;
  readonly expiresAtMs: number;
  consumedBy: { readonly bodySha256: string; readonly enrollmentId: string } | undefined;
}

export interface SeenSubmission {
  readonly challengeId: string;
  readonly bodySha256: string;
  readonly status: number;
}

type TokenIssuer = Awaited<ReturnType<typeof generateKeyPair>>;

export class FakeControl {
  readonly enrollments = new Map<string, FakeEnrollment>();
  readonly submissions: SeenSubmission[] = [];
  readonly requests: {
    readonly method: string;
    readonly path: string;
    readonly authorization: string | undefined;
  }[] = [];
  /** Every challenge and signature that went over the wire. */
  readonly secrets: string[] = [];
  readonly revokedThumbprints = new Set<string>();
  policyProblem: readonly [number, string] | undefined;
  /** A result replaces the normal answer. */
  interfere:
    | ((
        method: string,
        path: string,
      ) =>
        | { readonly status: number; readonly code: string; readonly retryAfter?: number | string }
        | undefined)
    | undefined;
  /** What issued keys may be signed for. */
  profiles: readonly object[] = [profile()];
  readiness: object = { ready: true, conditions: [] };
  readonly #options: FakeControlOptions;
  readonly #tokens: TokenIssuer;
  readonly #challenges = new Map<string, Challenge>();
  readonly #server: Server;

  private constructor(options: FakeControlOptions, tokens: TokenIssuer) {
    this.#options = options;
    this.#tokens = tokens;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(options: FakeControlOptions = {}): Promise<FakeControl> {
    const control = new FakeControl(options, await generateKeyPair('ES256'));
    await new Promise<void>((resolve) => control.#server.listen(0, '127.0.0.1', resolve));
    return control;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  token(
    members: { readonly subject?: string; readonly audience?: string; readonly ttlSeconds?: number } = {},
  ): Promise<string> {
    const { subject = SUBJECT, audience = AUDIENCE, ttlSeconds = 3600 } = members;
    const nowSeconds = Math.floor(this.#nowMs() / 1000);
    return new SignJWT({ jti: randomBytes(8).toString('hex') })
      .setProtectedHeader({ alg: 'ES256', kid: 'cluster-1' })
      .setIssuer(ISSUER)
      .setSubject(subject)
      .setAudience([audience])
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + ttlSeconds)
      .sign(this.#tokens.privateKey);
  }

  /** Different texts that were submitted: each would be an enrollment of its own. */
  get distinctSubmissions(): number {
    return new Set(this.submissions.map(({ bodySha256 }) => bodySha256)).size;
  }

  get keyIds(): readonly string[] {
    return [...this.enrollments.values()].flatMap(({ keyId }) => (keyId === undefined ? [] : [keyId]));
  }

  approveAll(): void {
    for (const enrollment of this.enrollments.values()) {
      if (enrollment.state === 'pending_approval') this.#issue(enrollment);
    }
  }

  denyAll(code: string): void {
    for (const enrollment of this.enrollments.values()) {
      if (enrollment.state !== 'pending_approval') continue;
      enrollment.state = 'denied';
      enrollment.denialCode = code;
    }
  }

  #issue(enrollment: FakeEnrollment): void {
    if (this.#nowMs() >= enrollment.expiresAtMs) {
      enrollment.state = 'expired';
      return;
    }
    enrollment.state = 'issued';
    enrollment.keyId = `dk_${randomBytes(8).toString('hex')}`;
  }

  #nowMs(): number {
    return this.#options.nowMs?.() ?? Date.now();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const { method = '', url = '' } = request;
    const { authorization } = request.headers;
    this.requests.push({ method, path: url, authorization });
    const answer = await this.#answer(method, url, authorization, Buffer.concat(chunks)).catch(
      (error: unknown) => {
        if (error instanceof Problem) return error.answer;
        throw error;
      },
    );
    if (response.destroyed) return;
    const isProblem = answer.status >= 400;
    if (answer.retryAfter !== undefined) response.setHeader('retry-after', answer.retryAfter);
    response.writeHead(answer.status, {
      'content-type': isProblem ? 'application/problem+json' : 'application/json; charset=utf-8',
    });
    response.end(JSON.stringify(answer.body));
  }

  async #answer(
    method: string,
    path: string,
    authorization: string | undefined,
    body: Buffer,
  ): Promise<Answer> {
    const interference = this.interfere?.(method, path);
    if (interference !== undefined) {
      const { answer } = new Problem(interference.status, interference.code);
      const { retryAfter } = interference;
      return retryAfter === undefined ? answer : { ...answer, retryAfter };
    }
    if (method === 'POST' && path === '/v1/enrollments/challenges') return this.#challenge(readObject(body));
    if (method === 'POST' && path === '/v1/enrollments') return this.#recordedSubmission(body);
    const [, id = '', readiness] = /^\/v1\/enrollments\/([^/]+)(\/readiness)?$/.exec(path) ?? [];
    const enrollment = this.enrollments.get(id);
    if (method !== 'GET' || enrollment === undefined) throw new Problem(404, 'enrollment_unknown');
    this.#checkPoll(enrollment, authorization);
    return {
      status: 200,
      body: readiness === undefined ? describe(enrollment, this.profiles) : this.readiness,
    };
  }

  #challenge(request: JsonObject): Answer {
    if (request.policy !== POLICY) throw new Problem(404, 'policy_unknown');
    if (request.provider !== 'oidc_jwks') throw new Problem(422, 'unsupported_enrollment_provider');
    if (this.policyProblem !== undefined) throw new Problem(...this.policyProblem);
    const key = importPublicJwk(request.public_key);
    if (key?.algorithm !== 'Ed25519') throw new Problem(422, 'public_key_invalid');
    if (this.revokedThumbprints.has(key.thumbprint)) throw new Problem(409, 'key_revoked');
    const challengeId = `ch_${randomBytes(9).toString('base64url')}`;
    const challenge = randomBytes(32).toString('base64url');
    const expiresAtMs = this.#nowMs() + (this.#options.challengeTtlSeconds ?? 120) * 1000;
    this.#challenges.set(challengeId, { policy: POLICY, key, challenge, expiresAtMs, consumedBy: undefined });
    this.secrets.push(challenge);
    const expires_at = new Date(expiresAtMs).toISOString();
    return { status: 201, body: { challenge_id: challengeId, challenge, auth_site: AUTH_SITE, expires_at } };
  }

  async #recordedSubmission(body: Buffer): Promise<Answer> {
    const submission = readObject(body);
    const challengeId = text(submission.challenge_id);
    const bodySha256 = hash('sha256', body, 'base64url');
    this.secrets.push(text(submission.signature));
    const record = (status: number) => this.submissions.push({ challengeId, bodySha256, status });
    try {
      const token = await this.#verifyToken(text(submission.workload_token));
      const answer = this.#submit(submission, bodySha256, token);
      record(answer.status);
      return answer;
    } catch (error) {
      if (error instanceof Problem) record(error.answer.status);
      throw error;
    }
  }

  /** In one turn of the event loop: two of the same submission make one enrollment. */
  #submit(submission: JsonObject, bodySha256: string, tokenExpiresAtMs: number | Problem): Answer {
    const challengeId = text(submission.challenge_id);
    const challenge = this.#challenges.get(challengeId);
    if (challenge === undefined) throw new Problem(404, 'challenge_unknown');
    if (challenge.consumedBy !== undefined) {
      const { bodySha256: first, enrollmentId } = challenge.consumedBy;
      if (first !== bodySha256 && !this.#isSigned(submission, challengeId, challenge))
        throw new Problem(409, 'challenge_consumed');
      return this.#again(enrollmentId);
    }
    if (this.#nowMs() >= challenge.expiresAtMs) throw new Problem(410, 'challenge_expired');
    if (!this.#isSigned(submission, challengeId, challenge)) throw new Problem(401, 'signature_invalid');
    if (typeof tokenExpiresAtMs !== 'number') throw tokenExpiresAtMs;
    if (this.policyProblem !== undefined) throw new Problem(...this.policyProblem);
    const lifetimeMs = (this.#options.maxKeyLifetimeSeconds ?? 86_400) * 1000;
    const enrollment: FakeEnrollment = {
      enrollmentId: `enr_${randomBytes(9).toString('base64url')}`,
      challengeId,
      key: challenge.key,
      createdAtMs: this.#nowMs(),
      expiresAtMs: Math.min(tokenExpiresAtMs, this.#nowMs() + lifetimeMs),
      state: 'pending_approval',
      denialCode: undefined,
      keyId: undefined,
      keyStatus: 'active',
    };
    if (this.#options.approval !== 'manual') this.#issue(enrollment);
    this.enrollments.set(enrollment.enrollmentId, enrollment);
    challenge.consumedBy = { bodySha256, enrollmentId: enrollment.enrollmentId };
    return { status: 201, body: describe(enrollment, this.profiles) };
  }

  #again(enrollmentId: string): Answer {
    const enrollment = this.enrollments.get(enrollmentId);
    if (enrollment === undefined) throw new Problem(404, 'challenge_unknown');
    return { status: 200, body: describe(enrollment, this.profiles) };
  }

  #isSigned(submission: JsonObject, challengeId: string, { policy, challenge, key }: Challenge): boolean {
    const signature = Buffer.from(text(submission.signature), 'base64url');
    const workloadToken = text(submission.workload_token);
    const publicUrls = this.#options.publicUrls?.() ?? [this.url];
    return publicUrls.some((controlUrl) => {
      const statement = { controlUrl, policyReference: policy, challengeId, challenge, workloadToken };
      return verifySignature(key, enrollmentText({ ...statement, keyThumbprint: key.thumbprint }), signature);
    });
  }

  /** Milliseconds at which the token expires, or why it is refused. */
  async #verifyToken(token: string): Promise<number | Problem> {
    try {
      const currentDate = new Date(this.#nowMs());
      const rules = { issuer: ISSUER, algorithms: ['ES256'], requiredClaims: ['exp', 'sub'], currentDate };
      const { payload } = await jwtVerify(token, this.#tokens.publicKey, rules);
      if (String(payload.aud) !== AUDIENCE) return new Problem(403, 'token_audience_mismatch');
      if (payload.sub !== SUBJECT) return new Problem(403, 'token_subject_mismatch');
      return (payload.exp ?? 0) * 1000;
    } catch {
      return new Problem(403, 'token_invalid');
    }
  }

  #checkPoll({ enrollmentId, key }: FakeEnrollment, authorization = ''): void {
    const [, time = '', signature = ''] =
      new RegExp(`^${POLL_SCHEME} ([1-9][0-9]*)\\.([A-Za-z0-9_-]+)$`).exec(authorization) ?? [];
    this.secrets.push(signature);
    const isNear = Math.abs(Number(time) - this.#nowMs() / 1000) <= POLL_WINDOW_SECONDS;
    const bytes = Buffer.from(signature, 'base64url');
    if (!isNear || !verifySignature(key, pollText(enrollmentId, Number(time)), bytes))
      throw new Problem(401, 'poll_unauthorized');
  }
}
