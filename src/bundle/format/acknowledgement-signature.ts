/**
 * The signature of an acknowledgement by the instance that sends it, as the value of a request header: the time in milliseconds
 * since the epoch, an Ed25519 signature in base64url, and `ended` in the last one of a graceful shutdown. The key pair lives in the memory of one run, so that the
 * instance's ID stands for this start, and no acknowledgement of an earlier one counts.
 * Source: docs/design/bundle.md "Distribution".
 */
import type { PublicKey } from '../../protocol/public-key.ts';
import { signMessage } from '../../protocol/signature.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';
import { type SigningInstance, signingText } from './instance-report.ts';

const CONTEXT = 'proofgate-ack-v1';
const HEADER = /^([1-9][0-9]{12,13}) ([A-Za-z0-9_-]{86})( ended)?$/;

/** What is signed, one member a line. */
export interface SignedAcknowledgement {
  readonly authSite: string;
  /** Names the target: the base64url SHA-256 of its token, which both sides know. */
  readonly tokenHash: string;
  readonly instanceId: string;
  readonly signing: SigningInstance;
  readonly revision: number;
  /** base64url SHA-256. */
  readonly head: string;
  readonly outcome: 'accepted' | 'refused';
}

export interface SignatureTime {
  /** Milliseconds since the epoch. */
  readonly signedAtMs: number;
  /** Whether the instance decides no more requests. */
  readonly hasEnded: boolean;
}

export function signAcknowledgement(
  acknowledgement: SignedAcknowledgement,
  key: SigningKey,
  time: SignatureTime,
): string {
  const signature = signMessage('Ed25519', key.privateKey, message(acknowledgement, time));
  return `${time.signedAtMs} ${signature.toString('base64url')}${time.hasEnded ? ' ended' : ''}`;
}

/** @returns undefined for an invalid signature */
export function verifyAcknowledgement(
  acknowledgement: SignedAcknowledgement,
  header: string,
  key: PublicKey,
): SignatureTime | undefined {
  const [, milliseconds, signature, ended] = HEADER.exec(header) ?? [];
  if (milliseconds === undefined || signature === undefined) return undefined;
  const time = { signedAtMs: Number(milliseconds), hasEnded: ended !== undefined };
  const bytes = Buffer.from(signature, 'base64url');
  return verifySignature(key, message(acknowledgement, time), bytes) ? time : undefined;
}

function message(acknowledgement: SignedAcknowledgement, { hasEnded, signedAtMs }: SignatureTime): Buffer {
  const { authSite, head, instanceId, outcome, revision, signing, tokenHash } = acknowledgement;
  const settings = signingText(signing);
  const end = hasEnded ? 'ended' : outcome;
  const lines = [
    CONTEXT,
    authSite,
    tokenHash,
    instanceId,
    settings,
    `${revision}`,
    head,
    end,
    `${signedAtMs}`,
  ];
  return Buffer.from(lines.join('\n'), 'utf8');
}
