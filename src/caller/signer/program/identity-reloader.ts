/** Loads the signer's identity from its key file, and reloads it when an agent replaces the files. */

import type { ReadinessCheck } from '../../../process/admin/admin-server.ts';
import type { Logger } from '../../../process/telemetry/logger.ts';
import { parsePassport } from '../../../protocol/passport.ts';
import { formatMoment } from '../../../protocol/rfc3339.ts';
import { KeyFileIdentity, type KeyIdentity } from '../../enroll/key-file-identity.ts';
import { readProfileFile } from '../../profiles/profile-file.ts';
import type { RequestSigner } from '../../sign/request-signer.ts';

const RELOAD_EVERY_MS = 1_000;
const NO_PROFILE =
  'profile_not_found: the key has no signing profile, so every request is refused: grant its client a resource of a route';

export interface IdentityReloaderOptions {
  readonly keyFile: string;
  /** File of signing profiles that replace those beside the key. */
  readonly profileFile: string | undefined;
  /** Origins of `--upstream` and `--route`. */
  readonly upstreamOrigins: readonly string[];
  /** How to handle requests that no profile fits. */
  readonly unsigned: 'deny' | 'pass';
  readonly signer: RequestSigner;
  readonly logger: Logger;
}

export class IdentityReloader {
  readonly #file: KeyFileIdentity;
  readonly #options: IdentityReloaderOptions;
  #identity: KeyIdentity | undefined;
  #endsAtMs = 0;
  #problem: string | undefined = 'identity_not_ready: the key is not read yet';
  #timer: NodeJS.Timeout | undefined;

  constructor(options: IdentityReloaderOptions) {
    this.#options = options;
    const { keyFile, profileFile } = options;
    this.#file = new KeyFileIdentity(keyFile, {
      profiles: profileFile === undefined ? undefined : { path: profileFile, read: readProfileFile },
      onRejected: (error) => this.#logRejection(error),
    });
  }

  /** Reads the files now and at an interval. It also starts with an unusable key, because an agent may replace it. */
  async start(): Promise<void> {
    await this.#reload();
    this.#timer = setInterval(() => void this.#reload(), RELOAD_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Unix time in seconds; 0 without a usable key. */
  endSeconds(): number {
    return this.#identity === undefined || Date.now() >= this.#endsAtMs
      ? 0
      : Math.floor(this.#endsAtMs / 1000);
  }

  check(): ReadinessCheck {
    const hasEnded = this.#problem === undefined && Date.now() >= this.#endsAtMs;
    const problem = hasEnded ? `passport_expired: ended at ${formatMoment(this.#endsAtMs)}` : this.#problem;
    if (problem !== undefined) return { name: 'key', problem };
    if (this.#refusesAll()) return { name: 'key', problem: NO_PROFILE };
    const secondsLeft = Math.floor((this.#endsAtMs - Date.now()) / 1000);
    return {
      name: 'key',
      problem,
      warning: this.#warning(),
      secondsLeft: Number.isFinite(secondsLeft) ? secondsLeft : undefined,
    };
  }

  get #profiles() {
    return this.#identity?.files.flatMap((file) => file.profiles) ?? [];
  }

  #refusesAll(): boolean {
    return this.#profiles.length === 0 && this.#options.unsigned === 'deny';
  }

  #warning(): string | undefined {
    const profiles = this.#profiles;
    if (profiles.length === 0) return 'the key has no signing profile: every request is sent unsigned';
    const uncovered = this.#options.upstreamOrigins.filter(
      (origin) => !profiles.some(({ origins }) => origins.includes(origin)),
    );
    return uncovered.length === 0 ? undefined : `no signing profile has the origin ${uncovered.join(', ')}`;
  }

  async #reload(): Promise<void> {
    const { logger, signer } = this.#options;
    try {
      const identity = await this.#file.current();
      this.#problem = undefined;
      if (identity === this.#identity) return;
      this.#identity = identity;
      this.#endsAtMs = endOf(identity);
      signer.replaceIdentity(identity);
      const { thumbprint } = identity.key.publicKey;
      const profiles = identity.files.reduce((count, file) => count + file.profiles.length, 0);
      logger.info(
        {
          event: 'identity_loaded',
          key_thumbprint: thumbprint,
          profiles,
          expires_at: Number.isFinite(this.#endsAtMs) ? formatMoment(this.#endsAtMs) : undefined,
        },
        'key and profiles loaded',
      );
    } catch (error) {
      const problem = describe(error);
      const isNew = problem !== this.#problem;
      this.#problem = problem;
      this.#identity = undefined;
      signer.replaceIdentity(undefined);
      if (isNew) logger.warn({ event: 'identity_unusable', fault: problem }, 'no key to sign with');
    }
  }

  #logRejection(error: unknown): void {
    this.#options.logger.warn(
      { event: 'file_rejected', fault: describe(error) },
      'replaced key files cannot be used; the earlier ones stay in use',
    );
  }
}

/** When the key or the first of its passports expires. */
function endOf({ expiresAtMs, passports }: KeyIdentity): number {
  const ends = [...(passports?.values() ?? [])].map(
    (jws) => parsePassport(jws)?.claims.expiresAtSeconds ?? 0,
  );
  return Math.min(expiresAtMs, ...ends.map((seconds) => seconds * 1000));
}

/** Errors of these files have a code and contain no secret. */
function describe(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  return code === undefined ? 'internal' : `${code}: ${(error as Error).message}`;
}
