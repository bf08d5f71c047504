/** The caller that signs: a key with the profiles and passports from its files. */
import { type BrokerState, signingProfilesOf } from '../../caller/broker/broker-state.ts';
import { readBrokerState } from '../../caller/broker/broker-state-file.ts';
import { enrolledProfiles } from '../../caller/enroll/enrolled-profiles.ts';
import { EnrollmentStateFile, settledKeyFile } from '../../caller/enroll/state-file.ts';
import { readProfileFile } from '../../caller/profiles/profile-file.ts';
import { readInputBytes } from '../../process/files/input-files.ts';
import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { ClientError } from '../../protocol/client-error.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { SigningProfiles } from '../../protocol/signing-profile.ts';

export interface CallerValues {
  readonly key: string | undefined;
  readonly profileFile: string | undefined;
  readonly passportFile: string | undefined;
}

export interface SigningCaller {
  readonly holderKey: SigningKey;
  /** Signing profile files; at most one of them may fit a request. */
  readonly files: readonly SigningProfiles[];
  /** Undefined: the key signs its own passport. */
  readonly passportFor: (audience: string) => Promise<string | undefined>;
  /** When the enrolled key ends. */
  readonly expiresAtMs?: number | undefined;
}

const MAX_PASSPORT_FILE_BYTES = 16 * 1024;

/** Reads the key, and its profiles and passports, without a broker. @throws CliError, ClientError, EnrollError, BrokerError */
export async function readLocalCaller(values: CallerValues): Promise<SigningCaller> {
  const { key, passportFile } = values;
  if (key === undefined) {
    throw usageError('flag_required', '--key is required, or --broker-url with --spiffe-socket');
  }
  // Resolved once, so that the key and its state match while an agent replaces them.
  const keyFile = await settledKeyFile(key);
  const holderKey = await readSigningKeyFile(keyFile);
  const keyThumbprint = holderKey.publicKey.thumbprint;
  const state = await readBrokerState(keyFile, keyThumbprint);
  const passport = passportFile === undefined ? undefined : await readPassport(passportFile);
  return {
    holderKey,
    ...(await readFiles(values, { key, keyFile, keyThumbprint }, state)),
    passportFor: async (audience) => passport ?? (state && passportOf(state, audience, key)),
  };
}

interface KeyAtHand {
  /** As given, for messages. */
  readonly key: string;
  readonly keyFile: string;
  readonly keyThumbprint: string;
}

/** The profiles of the named file, otherwise of the key's broker state or enrollment. */
async function readFiles(
  { profileFile }: CallerValues,
  { key, keyFile, keyThumbprint }: KeyAtHand,
  state: BrokerState | undefined,
): Promise<Pick<SigningCaller, 'files' | 'expiresAtMs'>> {
  if (profileFile !== undefined) return { files: [await readProfileFile(profileFile)] };
  if (state !== undefined) return { files: signingProfilesOf(state.profileDocuments, key) };
  const enrollment = await new EnrollmentStateFile(keyFile).load();
  const profiles = enrolledProfiles(enrollment, { keyThumbprint, keyFile: key, nowMs: Date.now() });
  return { files: [profiles], expiresAtMs: enrollment?.enrolled?.key.expiresAtMs };
}

function passportOf({ passports }: BrokerState, audience: string, key: string): string {
  const found = passports.find((passport) => passport.audience === audience);
  if (found !== undefined) return found.jws;
  throw new ClientError('passport_required', `${key} has no passport for the audience ${audience}`);
}

async function readPassport(file: string): Promise<string> {
  const bytes = await readInputBytes(file, { maxBytes: MAX_PASSPORT_FILE_BYTES, secret: true });
  return bytes.toString('latin1');
}
