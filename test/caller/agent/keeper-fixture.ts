/**
 * An agent's keeper inside the test process: real files and HTTP, and a fake clock that the test and the keeper's waits
 * advance.
 */
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentReadiness } from '../../../src/caller/agent/agent-process.ts';
import { readTokenFile } from '../../../src/caller/agent/agent-token.ts';
import { KeyKeeper } from '../../../src/caller/agent/keeper.ts';
import type {
  KeeperEvent,
  KeeperOptions,
  KeyReadiness,
  KeyRun,
} from '../../../src/caller/agent/keeper-ports.ts';
import { type KeyPair, KeyPairs } from '../../../src/caller/agent/key-pairs.ts';
import { ControlClient } from '../../../src/caller/enroll/control-client.ts';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import { enroll } from '../../../src/caller/enroll/enroll.ts';
import { readWorkloadToken } from '../../../src/caller/enroll/enroll-with-files.ts';
import { openEnrollmentKey } from '../../../src/caller/enroll/enrollment-key.ts';
import type { EnrolledKeyRecord } from '../../../src/caller/enroll/enrollment-state.ts';
import { refreshEnrolledKey } from '../../../src/caller/enroll/refresh-enrollment.ts';
import { EnrollmentStateFile, readEnrolledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import { ServiceHttp } from '../../../src/caller/service/service-http.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { FakeControl, type FakeControlOptions, POLICY } from '../../support/fakes/control-enrollment.ts';

const MAX_CHECKS = 2000;

export class AgentFixture {
  readonly folder: string;
  readonly control: FakeControl;
  readonly events: KeeperEvent[] = [];
  /** Waits between two checks, and within enrollment. */
  readonly waits: number[] = [];
  /** Offset from the real clock. */
  skippedMs = 0;
  stop = new AbortController();
  /** Called before a wait advances the clock. */
  onSleep: () => void | Promise<void> = () => {};
  keeper: KeyKeeper;
  pairs: KeyPairs;
  readonly #options: KeeperOptions;
  readonly #clock: { readonly nowMs: () => number };

  private constructor(
    folder: string,
    control: FakeControl,
    clock: { nowMs: () => number },
    options: KeeperOptions,
  ) {
    this.folder = folder;
    this.control = control;
    this.#options = options;
    this.#clock = clock;
    clock.nowMs = () => Date.now() + this.skippedMs;
    [this.pairs, this.keeper] = this.#made();
  }

  static async start(
    controlOptions: FakeControlOptions = {},
    options: Partial<KeeperOptions> = {},
  ): Promise<AgentFixture> {
    const clock = { nowMs: () => Date.now() };
    const control = await FakeControl.start({ ...controlOptions, nowMs: () => clock.nowMs() });
    const folder = await mkdtemp(join(tmpdir(), 'proofgate-agent-'));
    await mkdir(join(folder, 'keys'));
    const agent = new AgentFixture(folder, control, clock, {
      refreshSkewMs: 300_000,
      pollIntervalMs: 2000,
      timeoutMs: 300_000,
      startsAnew: false,
      ...options,
    });
    await agent.renewToken();
    return agent;
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.control.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  get keyFile(): string {
    return join(this.folder, 'keys', 'key.pem');
  }

  get tokenFile(): string {
    return join(this.folder, 'token');
  }

  get nowMs(): number {
    return this.#clock.nowMs();
  }

  /** Replaces the token as a kubelet does: a new folder, and a link that moves to it. */
  async renewToken(members: { readonly ttlSeconds?: number; readonly subject?: string } = {}): Promise<void> {
    await this.putToken(await this.control.token(members));
  }

  async putToken(token: string): Promise<void> {
    const version = await mkdtemp(join(this.folder, '..version-'));
    await writeFile(join(version, 'token'), token);
    await symlink(version, join(this.folder, '..data_tmp'));
    await rename(join(this.folder, '..data_tmp'), join(this.folder, '..data'));
    await symlink('..data/token', this.tokenFile).catch(() => undefined);
  }

  /** Simulates a restart of the process. */
  restart(): void {
    this.stop.abort();
    this.stop = new AbortController();
    [this.pairs, this.keeper] = this.#made();
  }

  /** Runs checks until the condition holds; each check advances the clock. */
  async checkUntil(holds: () => boolean | Promise<boolean>): Promise<void> {
    for (let i = 0; i < MAX_CHECKS; i++) {
      if (await holds()) return;
      await this.keeper.check(this.stop.signal);
    }
    throw new Error(`not within ${MAX_CHECKS} checks`);
  }

  /** Advances the clock without a check. */
  pass(ms: number): void {
    this.skippedMs += ms;
  }

  async keyId(): Promise<string | undefined> {
    const { state } = await readEnrolledKeyFile(this.keyFile);
    return state.enrolled?.key.keyId;
  }

  get trouble(): string | undefined {
    return this.keeper.state.trouble?.code;
  }

  get isReady(): boolean {
    return this.checks.every(({ problem }) => problem === undefined);
  }

  get checks() {
    return agentReadiness(this.keeper.state, this.nowMs);
  }

  count(kind: KeeperEvent['kind']): number {
    return this.events.filter((event) => event.kind === kind).length;
  }

  async tokenText(): Promise<string> {
    return readFile(this.tokenFile, 'utf8');
  }

  #made(): readonly [KeyPairs, KeyKeeper] {
    const pairs = new KeyPairs(this.keyFile, this.#target);
    const keeper = new KeyKeeper(
      {
        pairs,
        now: () => ({ wallMs: this.nowMs, monotonicMs: performance.now() + this.skippedMs }),
        sleep: (waitMs) => this.#sleep(waitMs),
        random: () => 0,
        readToken: () => readTokenFile(this.tokenFile),
        enroll: (run) => this.#enroll(run),
        readinessOf: (pair) => this.#readinessOf(pair),
        refresh: ({ keyFile }, stop) =>
          refreshEnrolledKey(
            keyFile,
            { controlUrl: undefined, controlCaFile: undefined, timeoutMs: 5000, stop },
            () => this.nowMs,
          ),
        report: (event) => this.events.push(event),
      },
      this.#options,
    );
    return [pairs, keeper];
  }

  get #target() {
    return { controlUrl: this.control.url, policy: POLICY };
  }

  async #sleep(waitMs: number): Promise<void> {
    this.waits.push(waitMs);
    await this.onSleep();
    this.skippedMs += waitMs;
  }

  async #enroll({
    keyFile,
    maxRetryAfterMs,
    pollIntervalMs,
    stop,
    report,
  }: KeyRun): Promise<EnrolledKeyRecord> {
    const key = await openEnrollmentKey({ kind: 'make', file: keyFile }, this.#target);
    return this.#withControl(key, async (control) => {
      const { refreshSkewMs, timeoutMs } = this.#options;
      const { record } = await enroll(
        {
          target: this.#target,
          provider: 'oidc_jwks',
          key,
          waitsForActivation: true,
          timeoutMs,
          requestTimeoutMs: 5000,
          pollIntervalMs,
          maxRetryAfterMs,
          submitRetries: 0,
          refreshSkewMs,
          forcesReenrollment: false,
        },
        {
          control,
          states: new EnrollmentStateFile(keyFile),
          readToken: () => readWorkloadToken(this.tokenFile),
          nowMs: () => this.nowMs,
          monotonicMs: () => performance.now() + this.skippedMs,
          sleep: (waitMs) => this.#sleep(waitMs),
          random: () => 0,
          stop,
          report,
        },
      );
      return record;
    });
  }

  #readinessOf({ key, record }: KeyPair): Promise<KeyReadiness> {
    return this.#withControl(key, async (control) => {
      const call = { timeoutMs: 5000, stop: this.stop.signal };
      const verdict = await control.readiness(record.enrollmentId, call);
      if (verdict.kind !== 'done') return 'unknown';
      const { conditions, isReady } = verdict.value;
      if (isReady) return 'ready';
      return conditions.some(({ state }) => state === 'revoked') ? 'revoked' : 'not_ready';
    });
  }

  async #withControl<T>(key: SigningKey, ask: (control: ControlClient) => Promise<T>): Promise<T> {
    const http = new ServiceHttp({ url: parseControlUrl(this.control.url), caPem: undefined });
    try {
      return await ask(new ControlClient({ http, target: this.#target, key, nowMs: () => this.nowMs }));
    } finally {
      await http.close();
    }
  }
}
