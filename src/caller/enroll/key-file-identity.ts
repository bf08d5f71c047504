/**
 * The identity of a key file: the key, with the profiles and passports beside it. They are read again when an agent or
 * `proofgate enroll` replaces the files. Source: docs/operate/workloads.md "Files".
 */
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { readSigningKeyFile } from '../../process/files/key-files.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { SigningProfiles } from '../../protocol/signing-profile.ts';
import { signingProfilesOf } from '../broker/broker-state.ts';
import { brokerStatePathOf, readBrokerState } from '../broker/broker-state-file.ts';
import { EnrollError } from './enroll-error.ts';
import { enrolledProfiles } from './enrolled-profiles.ts';
import { EnrollmentStateFile, settledKeyFile, statePathOf } from './state-file.ts';

export interface KeyIdentity {
  readonly key: SigningKey;
  /** Signing profile files; at most one of them may fit a request. */
  readonly files: readonly SigningProfiles[];
  /** Compact JWS by audience; undefined when the key signs its own passports. */
  readonly passports: ReadonlyMap<string, string> | undefined;
  /** Infinity for passports of a broker, because each has its own expiry. */
  readonly expiresAtMs: number;
}

/**
 * @param given signing profiles that replace those beside the key
 * @throws CliError, ClientError, EnrollError, BrokerError
 */
export async function readKeyIdentity(
  keyFile: string,
  nowMs: number,
  given?: GivenProfiles,
): Promise<KeyIdentity> {
  // The path is resolved once, so that the key matches its state even while an agent replaces them.
  const settled = await settledKeyFile(keyFile);
  const key = await readSigningKeyFile(settled);
  const keyThumbprint = key.publicKey.thumbprint;
  const broker = await readBrokerState(settled, keyThumbprint);
  const givenFiles = given === undefined ? undefined : [await given.read(given.path)];
  if (broker !== undefined) {
    const passports = new Map(broker.passports.map(({ audience, jws }) => [audience, jws]));
    const files = givenFiles ?? signingProfilesOf(broker.profileDocuments, keyFile);
    return { key, files, passports, expiresAtMs: Number.POSITIVE_INFINITY };
  }
  if (givenFiles !== undefined) {
    return { key, files: givenFiles, passports: undefined, expiresAtMs: Number.POSITIVE_INFINITY };
  }
  const state = await new EnrollmentStateFile(settled).load();
  const files = [enrolledProfiles(state, { keyThumbprint, keyFile, nowMs })];
  const expiresAtMs = state?.enrolled?.key.expiresAtMs ?? Number.POSITIVE_INFINITY;
  return { key, files, passports: undefined, expiresAtMs };
}

const CHECK_EVERY_MS = 1_000;

/** A file of signing profiles and its reader. The SDK has no such file and does not load the reader. */
export interface GivenProfiles {
  readonly path: string;
  readonly read: (path: string) => Promise<SigningProfiles>;
}

export interface KeyFileOptions {
  /** Signing profiles that replace those beside the key. */
  readonly profiles?: GivenProfiles | undefined;
  readonly nowMs?: () => number;
  /** Called for replaced files that cannot be used yet. The earlier identity stays in use until it expires. */
  readonly onRejected?: (error: unknown) => void;
}

/** Checks the files when the identity is requested, at most once a second, so it needs no timer. */
export class KeyFileIdentity {
  readonly #keyFile: string;
  readonly #profiles: GivenProfiles | undefined;
  readonly #nowMs: () => number;
  readonly #onRejected: (error: unknown) => void;
  #identity: KeyIdentity | undefined;
  #loadedFingerprint = '';
  /** Monotonic time, so that a clock that is set back does not stop the checks. */
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #reloading: Promise<void> | undefined;

  constructor(
    keyFile: string,
    { nowMs = Date.now, onRejected = () => undefined, profiles }: KeyFileOptions = {},
  ) {
    this.#keyFile = keyFile;
    this.#profiles = profiles;
    this.#nowMs = nowMs;
    this.#onRejected = onRejected;
  }

  /** @throws as {@link readKeyIdentity}, when there is no usable identity */
  async current(): Promise<KeyIdentity> {
    if (!this.#isFresh()) {
      this.#reloading ??= this.#reloadIfChanged().finally(() => {
        this.#reloading = undefined;
      });
      await this.#reloading;
    }
    // Reloading without an identity throws.
    return this.#identity ?? this.#read();
  }

  #isFresh(): boolean {
    return (
      this.#identity !== undefined &&
      performance.now() - this.#checkedAtMs < CHECK_EVERY_MS &&
      this.#nowMs() < this.#identity.expiresAtMs
    );
  }

  async #reloadIfChanged(): Promise<void> {
    const fingerprint = await this.#fingerprint();
    this.#checkedAtMs = performance.now();
    const current = this.#identity;
    const hasEnded = current === undefined || !(this.#nowMs() < current.expiresAtMs);
    if (!hasEnded && fingerprint === this.#loadedFingerprint) return;
    try {
      this.#identity = await this.#read();
      this.#loadedFingerprint = fingerprint;
    } catch (error) {
      // A refusal means that Control ended the key. Any other fault may come from files that are being replaced.
      if (hasEnded || isRefusal(error)) {
        this.#identity = undefined;
        throw error;
      }
      this.#onRejected(error);
    }
  }

  #read(): Promise<KeyIdentity> {
    return readKeyIdentity(this.#keyFile, this.#nowMs(), this.#profiles);
  }

  async #fingerprint(): Promise<string> {
    const file = await settledKeyFile(this.#keyFile);
    const given = this.#profiles === undefined ? [] : [this.#profiles.path];
    const paths = [file, statePathOf(file), brokerStatePathOf(file), ...given];
    return (await Promise.all(paths.map((path) => fileFingerprint(path).catch(() => '-')))).join();
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof EnrollError && error.kind === 'refused';
}
