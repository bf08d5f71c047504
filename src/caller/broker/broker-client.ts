/**
 * Gets passports and signing profiles from a broker. A call sends one request, or two with a challenge. It retries
 * nothing.
 */

import type { BrokerOperation } from '../../protocol/broker-text.ts';
import type { NoAnswerCause, ServiceHttp } from '../service/service-http.ts';
import { type Fault, type Verdict, verdictOf } from '../service/service-verdict.ts';
import type { CallerProof, PassportRequest } from '../service/wire-types.ts';
import { type IssuedPassport, readChallenge, readPassport, readProfileDocuments } from './broker-answers.ts';
import { BrokerError, type BrokerFault } from './broker-error.ts';
import type { CallerProver } from './caller-prover.ts';

export interface BrokerClientParts {
  /** When the connection is the proof, it uses the prover's TLS client certificate. */
  readonly http: Pick<ServiceHttp, 'exchange'>;
  /** The broker's `--public-url`, which the proof signs. */
  readonly brokerUrl: string;
  readonly prover: CallerProver;
  /** Timeout of each exchange. */
  readonly timeoutMs: number;
  readonly stop: AbortSignal;
}

export class BrokerClient {
  readonly #parts: BrokerClientParts;

  constructor(parts: BrokerClientParts) {
    this.#parts = parts;
  }

  /** @throws BrokerError */
  async passport(audience: string): Promise<IssuedPassport> {
    const holderThumbprint = this.#parts.prover.holderKey.publicKey.thumbprint;
    const body: PassportRequest = { audience, proof: await this.#proof('passport', audience) };
    return this.#post('/v1/passports', body, (answer) =>
      readPassport(answer, { audience, holderThumbprint }),
    );
  }

  /** The profile files that fit the caller, not parsed yet. @throws BrokerError */
  async profiles(): Promise<readonly unknown[]> {
    const body = { proof: await this.#proof('profiles', NO_AUDIENCE) };
    return this.#post('/v1/profiles', body, readProfileDocuments);
  }

  async #proof(operation: BrokerOperation, audience: string): Promise<CallerProof> {
    const { brokerUrl, prover } = this.#parts;
    if (prover.proof.kind === 'connection') return { kind: 'mtls' };
    const challenge = await this.#post('/v1/challenges', undefined, readChallenge);
    return prover.proof.prove({ operation, brokerUrl, challenge, audience });
  }

  async #post<T>(
    path: string,
    body: object | undefined,
    read: (answer: string) => T | undefined,
  ): Promise<T> {
    const { http, stop, timeoutMs } = this.#parts;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const reply = await http.exchange({
      ...{ method: 'POST', path, body: text, authorization: undefined, timeoutMs, stop },
    });
    const verdict: Verdict<T> = verdictOf(reply, read);
    if (verdict.kind === 'done') return verdict.value;
    throw brokerFault(verdict, this.#parts.brokerUrl);
  }
}

/** Replaces the audience in the signed text of an operation without one. */
const NO_AUDIENCE = '-';

function brokerFault(fault: Fault, brokerUrl: string): BrokerError {
  switch (fault.kind) {
    case 'refused':
      return new BrokerError('refused', fault.code, REFUSALS[fault.code] ?? 'the broker refused');
    case 'later': {
      const text = 'the broker cannot answer now: try again later';
      return new BrokerError('unreachable', fault.code, REFUSALS[fault.code] ?? text, fault.retryAfterMs);
    }
    case 'unreachable':
      return new BrokerError('unreachable', 'unreachable', notReached(brokerUrl, fault.cause));
    case 'unclear':
      return new BrokerError(...UNCLEAR[fault.cause]);
  }
}

const SIGNED_FOR_OTHER_URL = 'invalid signature: --broker-url must be the public URL of the broker';

/** The broker's own texts are not shown, because a server that is not a broker could send anything. */
const REFUSALS: { readonly [code: string]: string } = {
  caller_denied: 'the caller is on the deny list of the broker',
  challenge_invalid:
    'this replica of the broker did not make the challenge: its operator gives all replicas one --challenge-key-file',
  challenge_expired: 'the challenge expired before it was answered: try again',
  client_certificate_missing:
    'the broker sees no client certificate: does something end TLS before it? Use --broker-proof signed_form',
  credential_ending: 'the SVID ends at once: wait for the next one',
  holder_key_limit: 'this identity has used too many holder keys in a short time: wait',
  holder_key_unsupported: 'the SVID key is neither P-256 nor Ed25519: use --broker-proof signed_form',
  holder_signature_invalid: SIGNED_FOR_OTHER_URL,
  jwt_svid_not_accepted: 'this broker accepts no JWT-SVIDs: use --broker-proof mtls or signed_form',
  key_not_registered: 'the key is not registered at the broker: its operator adds it to --software-keys',
  registered_signature_invalid: SIGNED_FOR_OTHER_URL,
  svid_expired: "the SVID has expired, or the broker's clock is ahead",
  svid_constraints: "a signer's constraints forbid the SVID: its trust domain's operator must change them",
  svid_not_yet_valid: "the SVID is not valid yet by the broker's clock",
  svid_reserved_id: 'the SVID belongs to a SPIRE server or agent: give the workload an entry of its own',
  svid_signature_invalid: SIGNED_FOR_OTHER_URL,
  svid_untrusted: "no authority that the broker knows for the SVID's trust domain signed it",
  trust_domain_not_served:
    "the broker has no signing key for the caller's trust domain: its operator makes one with broker rotate-key",
  trust_domain_unknown: "the broker has no trust bundle for the SVID's trust domain",
};

const UNCLEAR: { readonly [C in NoAnswerCause]: readonly [BrokerFault, string, string] } = {
  timed_out: ['timed_out', 'timed_out', 'the broker did not answer in time'],
  stopped: ['timed_out', 'interrupted', 'stopped before the broker answered'],
  connection_lost: [
    'unreachable',
    'unreachable',
    'the broker cannot be reached: the connection was lost; does --broker-url say https:// or http:// as the broker does?',
  ],
  answer_invalid: [
    'unreachable',
    'broker_answer_invalid',
    'what answers at --broker-url is no broker, or its passport is not the one that was asked for: check the URL',
  ],
};

function notReached(brokerUrl: string, cause: string): string {
  return `the broker at ${brokerUrl} cannot be reached (${cause}): ${hintFor(cause)}`;
}

/** @param cause a code of Node.js */
function hintFor(cause: string): string {
  if (cause === 'CERT_HAS_EXPIRED') return 'its certificate has expired; its operator renews it';
  if (cause === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return 'its certificate is for another host; use the host of its public URL, or --broker-spiffe-id';
  }
  return /CERT|SIGN|UNABLE/.test(cause)
    ? 'its certificate is not trusted; name its CA with --broker-ca-file, or its identity with --broker-spiffe-id'
    : 'is --broker-url right, and the broker running?';
}
