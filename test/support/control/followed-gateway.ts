/** A real Envoy in front of a verifier that follows Control, and callers with keys that Control issued. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { enrolledProfiles } from '../../../src/caller/enroll/enrolled-profiles.ts';
import { readEnrolledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import { isJsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { headerValues, type WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { signRequest } from '../caller/signing.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../harness/envoy.ts';
import { closeAtOnce, patient } from '../harness/envoy-config.ts';
import { freePort } from '../harness/free-port.ts';
import { type Service, startProofgate } from '../harness/sidecar.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { httpGet, waitFor } from '../wait.ts';
import type { ControlStage } from './control-fixture.ts';
import { SITE_ID, TARGET_NAME } from './site-declaration.ts';

export interface SentRequest {
  readonly method: string;
  readonly target: string;
  readonly body?: string;
}

/** The caller's outcome. */
export interface Outcome {
  readonly status: number;
  /** Empty when it was allowed. */
  readonly reason: string;
  readonly detail: string;
}

const READ_ORDER: SentRequest = { method: 'GET', target: '/v1/orders/7' };

export class FollowedGateway {
  readonly upstream: Upstream;
  readonly envoy: RunningEnvoy;
  readonly origin: string;
  readonly secretsUsed: string[] = [];
  readonly #stage: ControlStage;
  readonly #client: WireClient;
  readonly #stateDirectory: string;
  #verifier: Service | undefined;

  private constructor(
    stage: ControlStage,
    parts: { readonly upstream: Upstream; readonly envoy: RunningEnvoy; readonly origin: string },
  ) {
    this.#stage = stage;
    this.upstream = parts.upstream;
    this.envoy = parts.envoy;
    this.origin = parts.origin;
    this.#client = http1Client({ host: parts.envoy.host, port: parts.envoy.port });
    this.#stateDirectory = join(stage.directory, 'state');
  }

  /** Declares the target, pins the site's keys, starts the verifier and waits until it has a bundle. */
  static async start(stage: ControlStage): Promise<FollowedGateway> {
    const upstream = await startUpstream();
    const socket = join(stage.directory, 'v.sock');
    const envoy = await startEnvoy(envoyVersions.at(-1) ?? '', {
      verifier: { kind: 'unix', path: socket },
      upstream: { host: upstream.host, port: upstream.port },
      edits: [closeAtOnce, ...patient],
    });
    const gateway = new FollowedGateway(stage, {
      upstream,
      envoy,
      origin: `http://${envoy.host}:${envoy.port}`,
    });
    await stage.applySite({ origin: gateway.origin, targets: [TARGET_NAME] });
    await mkdir(gateway.#stateDirectory);
    await mkdir(join(stage.directory, 'pins'));
    await stage.ctl('signing-keys', '--site', SITE_ID, '--out-dir', join(stage.directory, 'pins'));
    await gateway.startVerifier();
    return gateway;
  }

  async startVerifier(): Promise<void> {
    const pins = join(this.#stage.directory, 'pins');
    const flags = (await readdir(pins)).flatMap((file) => [
      file.startsWith('bundle') ? '--bundle-key' : '--freshness-key',
      join(pins, file),
    ]);
    const admin = `127.0.0.1:${await freePort()}`;
    this.#verifier = await startProofgate(
      [
        ...['verifier', '--auth-site', SITE_ID, '--replay', 'memory', '--state-dir', this.#stateDirectory],
        ...['--listen', `unix:${join(this.#stage.directory, 'v.sock')}`, '--admin-listen', admin, ...flags],
        ...['--control-url', this.#stage.controlUrl, '--log-level', 'trace'],
        ...['--control-token-file', join(this.#stage.directory, `${TARGET_NAME}.token`)],
      ],
      { readyUrl: `http://${admin}/readyz` },
    );
    this.#adminAddress = admin;
  }

  #adminAddress = '';

  async stopVerifier(): Promise<void> {
    const verifier = this.#verifier;
    this.#verifier = undefined;
    await verifier?.stop();
  }

  /** URL of the verifier's metrics. */
  get metricsUrl(): string {
    return `http://${this.#adminAddress}/metrics`;
  }

  /** The verifier's gauge of the revision that it decides from. */
  async revision(): Promise<number> {
    const { text } = await httpGet(this.metricsUrl);
    return Number(/^proofgate_bundle_revision(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1] ?? 0);
  }

  /** Signs with the enrolled key and sends. */
  send(keyFile: string, request: SentRequest = READ_ORDER): Promise<Outcome> {
    return this.#sendAs(keyFile, request, Date.now());
  }

  /** Sends with an expired key. The client would refuse to sign with it, so the client's clock is set back. */
  async sendExpired(keyFile: string): Promise<Outcome> {
    return this.#sendAs(keyFile, READ_ORDER, 0);
  }

  async #sendAs(
    keyFile: string,
    { method, target, body }: SentRequest,
    clientNowMs: number,
  ): Promise<Outcome> {
    const { key, state } = await readEnrolledKeyFile(keyFile);
    const url = `${this.origin}${target}`;
    const signed = signRequest(
      {
        method,
        url,
        body: body === undefined ? undefined : Buffer.from(body),
        headers: [],
      },
      {
        profiles: enrolledProfiles(state, {
          keyThumbprint: key.publicKey.thumbprint,
          keyFile,
          nowMs: clientNowMs,
        }),
        holderKey: key,
        brokerPassport: undefined,
        ttlSeconds: 30,
        nowSeconds: Math.floor(Date.now() / 1000),
      },
    );
    for (const { value } of signed.headers.reveal()) this.#stage.secrets.add('a credential', value);
    return this.sendWith(
      { method, target, ...(body === undefined ? {} : { body }) },
      signed.headers.reveal().map(({ name, value }) => [name, value] as const),
    );
  }

  async sendWith(request: SentRequest, headers: readonly (readonly [string, string])[]): Promise<Outcome> {
    const answer = await this.#client.send({
      ...request,
      authority: this.origin.slice('http://'.length),
      headers,
    });
    const [reason = ''] = headerValues(answer.headers, 'x-proofgate-reason');
    const problem = reason === '' ? undefined : parseStrictJson(answer.body.toString('utf8'));
    const detail = isJsonObject(problem) && typeof problem.detail === 'string' ? problem.detail : '';
    return { status: answer.status, reason, detail };
  }

  /** Sends until the answer is as expected: propagation takes its time. */
  async awaitOutcome(keyFile: string, expected: Partial<Outcome>, request?: SentRequest): Promise<Outcome> {
    let last: Outcome | undefined;
    try {
      return await waitFor(`an answer ${JSON.stringify(expected)}`, async () => {
        last = await this.send(keyFile, request);
        const fits = Object.entries(expected).every(
          ([name, value]) => last?.[name as keyof Outcome] === value,
        );
        return fits ? last : undefined;
      });
    } catch (error) {
      throw new Error(`${String(error)}; the last was ${JSON.stringify(last)}`);
    }
  }

  outputs(): string {
    const { stderrLines = [], stdoutLines = [] } = this.#verifier ?? {};
    return [...stderrLines, ...stdoutLines, ...this.envoy.stderrLines, ...this.envoy.accessLog].join('\n');
  }

  async stop(): Promise<void> {
    await this.stopVerifier();
    await this.envoy.stop();
    await this.upstream.stop();
  }
}
