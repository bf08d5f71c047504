/** Reads the files that `sign` and `request` name, or asks a broker, and signs. */

import { BROKER_CALL_SETTINGS, brokerCallPlanOf } from '../../caller/broker/broker-settings.ts';
import type { ProfileChoice } from '../../caller/profiles/select-profile.ts';
import { PROOF_SETTING } from '../../caller/sign/proof-setting.ts';
import { parseHeaderLine } from '../../caller/sign/request-headers.ts';
import {
  findProfile,
  RequestSigner,
  type RequestToSign,
  type SignedRequest,
} from '../../caller/sign/request-signer.ts';
import type { ResponseHead } from '../../caller/sign/send-request.ts';
import { readInputBytes, readStandardInput } from '../../process/files/input-files.ts';
import { usageError } from '../../process/program/errors.ts';
import type { Environment } from '../../process/program/output.ts';
import {
  duration,
  list,
  optional,
  type SettingValues,
  text,
  withDefault,
} from '../../process/settings/settings.ts';
import { ClientError } from '../../protocol/client-error.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { SigningProfiles } from '../../protocol/signing-profile.ts';
import type { CallerValues, SigningCaller } from './signing-caller.ts';

/** Flags that `sign` and `request` share. Imports no heavy module: the work is in `signing-inputs.ts`. */

export const SIGNING_POSITIONALS = {
  method: 'HTTP method, such as GET',
  url: 'URL exactly as it will be sent; nothing in it is rewritten',
};

/** Settings that select the caller that signs. */
export const CALLER_SETTINGS = {
  key: optional(
    text('--key <file>', 'private key, PKCS#8 PEM of mode 0600; required without --spiffe-socket'),
  ),
  profileFile: optional(
    text(
      '--profile-file <file>',
      "signing profiles, YAML or JSON; without it, those of the key's enrollment",
    ),
  ),
  profile: optional(text('--profile <name>', 'which profile, where more than one fits')),
  routeId: optional(text('--route-id <id>', 'which profile, by its route')),
  passportFile: optional(
    text('--passport-file <file>', 'passport from a broker, mode 0600, instead of one signed by the key'),
  ),
};

export const SIGNING_SETTINGS = {
  ...CALLER_SETTINGS,
  ...BROKER_CALL_SETTINGS,
  proof: PROOF_SETTING,
  dpopNonce: optional(
    text('--dpop-nonce <nonce>', "DPoP-Nonce of the server's last answer, for --proof dpop"),
  ),
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
};

type SigningValues = SettingValues<typeof SIGNING_SETTINGS>;
/** Values that select the caller that signs. */
export type SignerValues = CallerValues & Pick<SigningValues, 'profile' | 'routeId'>;
export type SigningPositionals = { readonly [N in keyof typeof SIGNING_POSITIONALS]: string };

/** Maximum body size: the body is in memory for hashing and sending. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

export interface SignedInput {
  /** The request with its body and parsed headers. */
  readonly request: RequestToSign & { readonly body: Buffer | undefined };
  readonly signed: SignedRequest;
  /** Reads the answer; signs anew when the server denied the request for want of a DPoP nonce. */
  readonly signAgain: (answer: ResponseHead) => SignedRequest | undefined;
}

/** @throws CliError, ClientError, EnrollError, BrokerError */
export async function signFromSettings(
  settings: SigningValues,
  positionals: SigningPositionals,
  env: Environment,
): Promise<SignedInput> {
  const headers = settings.headers.map((line) => parseHeaderLine(line));
  const ttlSeconds = wholeSeconds(settings.ttlMs);
  const choice = profileChoice(settings);
  const plan = brokerCallPlanOf(settings, env);
  const { method, url } = positionals;
  const signAs = async (caller: SigningCaller): Promise<SignedInput> => {
    const body = await readBody(settings.bodyFile);
    const { dpopNonce, signHeaders } = settings;
    const request = { method, url, body, headers, signHeaders, choice, ...(dpopNonce && { dpopNonce }) };
    const signer = requestSigner(await signerFor(request, caller), { proof: settings.proof, ttlSeconds });
    const signed = signedBy(signer, request);
    const { dpopNonce: _stale, ...withoutNonce } = request;
    const signAgain = ({ headers: given, statusCode }: ResponseHead) =>
      signer.readAnswer(signed.url.origin, statusCode, given) ? signedBy(signer, withoutNonce) : undefined;
    return { request, signed, signAgain };
  };
  if (plan !== undefined) {
    const { withBrokerCaller } = await import('./broker-caller.ts');
    return withBrokerCaller(plan, settings, signAs);
  }
  const { readLocalCaller } = await import('./signing-caller.ts');
  return signAs(await readLocalCaller(settings));
}

/** The key, the file and the passport that sign one request. */
export interface SelectedSigner {
  readonly profiles: SigningProfiles;
  readonly audience: string;
  readonly holderKey: SigningKey;
  /** Compact JWS; undefined when the holder key signs its own. */
  readonly brokerPassport: string | undefined;
  /** When the holder key ends, where it signs its own. */
  readonly expiresAtMs: number | undefined;
}

/** Selects the profile of the request, and the passport for its audience. @throws ClientError, BrokerError */
export async function signerFor(
  request: Pick<RequestToSign, 'method' | 'url' | 'choice'>,
  { expiresAtMs, files, holderKey, passportFor }: SigningCaller,
): Promise<SelectedSigner> {
  const { profile, profiles } = findProfile(request, files);
  const { audience } = profile;
  const brokerPassport = await passportFor(audience);
  return { profiles, audience, holderKey, brokerPassport, expiresAtMs };
}

interface ProofTerms {
  readonly proof: ProofFormat;
  /** Of proof and passport. */
  readonly ttlSeconds: number;
}

function requestSigner(
  { audience, brokerPassport, expiresAtMs, holderKey: key, profiles }: SelectedSigner,
  { proof, ttlSeconds }: ProofTerms,
): RequestSigner {
  const signer = new RequestSigner({ proof, proofTtlSeconds: ttlSeconds, passportTtlSeconds: ttlSeconds });
  const passports = brokerPassport === undefined ? undefined : new Map([[audience, brokerPassport]]);
  signer.replaceIdentity({ key, files: [profiles], passports, expiresAtMs });
  return signer;
}

function signedBy(signer: RequestSigner, request: RequestToSign): SignedRequest {
  const signed = signer.sign(request);
  if (signed.kind === 'signed') return signed;
  throw signed.code === 'identity_not_ready'
    ? new Error(signed.message)
    : new ClientError(signed.code, signed.message);
}

/** @throws CliError `set_profile_or_route_id` */
export function profileChoice({ profile, routeId }: SignerValues): ProfileChoice {
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

async function readBody(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  if (file === '-') return readStandardInput(MAX_BODY_BYTES);
  return readInputBytes(file, { maxBytes: MAX_BODY_BYTES, secret: false });
}
