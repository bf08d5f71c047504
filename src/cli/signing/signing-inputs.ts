/** Reads the files that `sign` and `request` name, and signs. */
import { enrolledProfiles } from '../../client/enroll/enrolled-profiles.ts';
import { parseHeaderLine } from '../../client/request-headers.ts';
import type { ProfileChoice } from '../../client/select-profile.ts';
import {
  type RequestToSign,
  type SignedRequest,
  type Signer,
  signRequest,
} from '../../client/sign-request.ts';
import { parseSigningProfiles, type SigningProfiles } from '../../client/signing-profile.ts';
import { usageError } from '../../program/errors.ts';
import { readInputBytes, readInputText, readStandardInput } from '../../program/input-files.ts';
import { readSigningKeyFile } from '../../program/key-files.ts';
import {
  duration,
  list,
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../program/settings.ts';
import { EnrollmentStateFile, settledKeyFile } from '../../workload/state-file.ts';

/** Flags that `sign` and `request` share. Imports no heavy module: the work is in `signing-inputs.ts`. */

export const SIGNING_POSITIONALS = {
  method: 'HTTP method, such as GET',
  url: 'URL exactly as it will be sent; nothing in it is rewritten',
};

export const SIGNING_SETTINGS = {
  key: required(text('--key <file>', 'private key, PKCS#8 PEM of mode 0600')),
  profileFile: optional(
    text(
      '--profile-file <file>',
      "signing profiles, YAML or JSON; without it, those of the key's enrollment",
    ),
  ),
  profile: optional(text('--profile <name>', 'which profile, where more than one fits')),
  routeId: optional(text('--route-id <id>', 'which profile, by its route')),
  bodyFile: optional(text('--body-file <file>', 'body of the request; - reads standard input')),
  headers: list(text('--header <line>', 'header of the request, "Name: value"'), '\n'),
  signHeaders: list(text('--sign-header <name>', "header to sign beyond the route's")),
  ttlMs: withDefault(
    duration('--ttl <duration>', 'life of proof and passport, whole seconds, at most 5m', {
      minMs: 1000,
      maxMs: 300_000,
    }),
    '60s',
  ),
  passportFile: optional(
    text('--passport-file <file>', 'passport from a broker, mode 0600, instead of one signed by the key'),
  ),
};

type SigningValues = SettingValues<typeof SIGNING_SETTINGS>;
export type SigningPositionals = { readonly [N in keyof typeof SIGNING_POSITIONALS]: string };

const MAX_PROFILE_BYTES = 4 * 1024 * 1024;
const MAX_PASSPORT_FILE_BYTES = 16 * 1024;
/** Maximum body size: the body is in memory for hashing and sending. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

export interface SignedInput {
  /** The request with its body and parsed headers. */
  readonly request: RequestToSign;
  readonly signed: SignedRequest;
}

/** @throws CliError, ClientError, EnrollError */
export async function signFromSettings(
  settings: SigningValues,
  positionals: SigningPositionals,
): Promise<SignedInput> {
  const headers = settings.headers.map((line) => parseHeaderLine(line));
  const signer = await readSigner(settings);
  const body = await readBody(settings.bodyFile);
  const { method, url } = positionals;
  const request: RequestToSign = { method, url, body, headers, extraSignedHeaders: settings.signHeaders };
  return { request, signed: signRequest(request, signer) };
}

async function readSigner(settings: SigningValues): Promise<Signer> {
  const choice = profileChoice(settings);
  const ttlSeconds = wholeSeconds(settings.ttlMs);
  const { passportFile } = settings;
  // Resolved once, so that key and enrollment match while an agent replaces them.
  const keyFile = await settledKeyFile(settings.key);
  const holderKey = await readSigningKeyFile(keyFile);
  return {
    choice,
    ttlSeconds,
    holderKey,
    profiles: await readProfiles(settings, keyFile, holderKey.publicKey.thumbprint),
    brokerPassport: passportFile === undefined ? undefined : await readPassport(passportFile),
    nowSeconds: Math.floor(Date.now() / 1000),
  };
}

/** Reads the profiles from the named file, otherwise from the key's enrollment. */
async function readProfiles(
  { key, profileFile }: SigningValues,
  keyFile: string,
  keyThumbprint: string,
): Promise<SigningProfiles> {
  if (profileFile !== undefined) {
    return parseSigningProfiles(await readInputText(profileFile, MAX_PROFILE_BYTES), profileFile);
  }
  const state = await new EnrollmentStateFile(keyFile).load();
  return enrolledProfiles(state, { keyThumbprint, keyFile: key, nowMs: Date.now() });
}

function profileChoice({ profile, routeId }: SigningValues): ProfileChoice {
  if (profile !== undefined && routeId !== undefined) {
    throw usageError('set_profile_or_route_id', 'give --profile or --route-id, not both');
  }
  if (profile !== undefined) return { kind: 'name', name: profile };
  return routeId === undefined ? { kind: 'only_fit' } : { kind: 'route_id', routeId };
}

function wholeSeconds(ttlMs: number): number {
  if (ttlMs % 1000 !== 0) throw usageError('bad_duration', '--ttl must be whole seconds');
  return ttlMs / 1000;
}

async function readPassport(file: string): Promise<string> {
  const bytes = await readInputBytes(file, { maxBytes: MAX_PASSPORT_FILE_BYTES, secret: true });
  return bytes.toString('latin1');
}

async function readBody(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  if (file === '-') return readStandardInput(MAX_BODY_BYTES);
  return readInputBytes(file, { maxBytes: MAX_BODY_BYTES, secret: false });
}
