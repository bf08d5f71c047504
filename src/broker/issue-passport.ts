/** Admits a verified caller and signs its passport. */
import { isIdentifier } from '../protocol/identifiers.ts';
import type { PublicKey } from '../protocol/public-key.ts';
import { SIGNATURE_BYTES } from '../protocol/signature.ts';
import { newJti, passportSigningInput } from '../protocol/signing.ts';
import type { BrokerPorts, BrokerSettings, PassportSigningKey } from './broker-ports.ts';
import { BrokerProblem } from './broker-problems.ts';
import type { IdentityLimits } from './identity-limits.ts';
import type { VerifiedCaller } from './verified-caller.ts';

export interface IssuedPassport {
  readonly jws: string;
  readonly passportId: string;
  readonly keyId: string;
  readonly expiresAtSeconds: number;
}

export interface Issuing {
  readonly settings: BrokerSettings;
  readonly ports: Pick<BrokerPorts, 'signingKeys' | 'denyList' | 'nowMs'>;
  readonly limits: IdentityLimits;
}

/** @throws BrokerProblem when the broker serves this caller nothing */
export function admitCaller({ ports, limits }: Issuing, caller: VerifiedCaller): void {
  const { denyList } = ports;
  const { credentialThumbprint, holder, subject, trustDomain } = caller;
  const thumbprints = [
    holder.thumbprint,
    ...(credentialThumbprint === undefined ? [] : [credentialThumbprint]),
  ];
  if (denyList.deniesSubject(subject) || thumbprints.some((one) => denyList.deniesThumbprint(one))) {
    throw new BrokerProblem('caller_denied');
  }
  // A SPIFFE ID may have 2048 characters, a passport's subject 512.
  if (!isIdentifier(subject))
    throw new BrokerProblem('svid_id', 'longer than the 512 characters of a passport');
  limits.countRequest(trustDomain, subject);
}

/**
 * @param caller admitted
 * @param holder the caller's key, or one that the broker keeps for this caller
 * @throws BrokerProblem
 */
export async function issuePassport(
  issuing: Issuing,
  caller: VerifiedCaller,
  holder: PublicKey,
  audience: string,
): Promise<IssuedPassport> {
  const { limits, ports, settings } = issuing;
  const { subject, trustDomain } = caller;
  const key = ports.signingKeys.current(trustDomain);
  if (key === undefined) throw new BrokerProblem('trust_domain_not_served');
  const times = passportTimes(settings, caller, ports.nowMs());
  limits.countHolder(trustDomain, subject, holder.thumbprint);
  const passportId = newJti();
  const input = passportSigningInput(
    {
      keyId: key.keyId,
      issuer: settings.issuer,
      subject,
      trustDomain,
      audience,
      ...times,
      keyBinding: caller.keyBinding,
      holderJwk: holder.jwk,
      passportId,
    },
    key.publicKey.algorithm,
  );
  const jws = `${input}.${await signatureOf(key, input)}`;
  return { jws, passportId, keyId: key.keyId, expiresAtSeconds: times.expiresAtSeconds };
}

/** A passport ends with its credential at the latest. */
function passportTimes({ passportTtlSeconds }: BrokerSettings, caller: VerifiedCaller, nowMs: number) {
  const issuedAtSeconds = Math.floor(nowMs / 1000);
  const expiresAtSeconds = Math.min(
    issuedAtSeconds + Math.min(passportTtlSeconds, caller.maxPassportTtlSeconds),
    Math.floor(caller.credentialEndsMs / 1000),
  );
  if (expiresAtSeconds <= issuedAtSeconds) throw new BrokerProblem('credential_ending');
  return { issuedAtSeconds, expiresAtSeconds };
}

async function signatureOf(key: PassportSigningKey, input: string): Promise<string> {
  const signature = await key.sign(Buffer.from(input, 'latin1')).catch((cause: unknown) => {
    throw Object.assign(new BrokerProblem('signing_unavailable'), { cause });
  });
  if (signature.byteLength !== SIGNATURE_BYTES) throw new BrokerProblem('signing_unavailable');
  return Buffer.from(signature).toString('base64url');
}
