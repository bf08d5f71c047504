/**
 * `POST /v1/proofs`: the broker signs a caller's request with a holder key that it keeps. A program between caller
 * and broker could have any request signed, so the connection must be direct: TLS with a client certificate of the caller's own
 * key, or the Unix socket.
 * Source: docs/operate/broker.md "Proofs".
 */
import { X509Certificate } from 'node:crypto';
import { passportSha256 } from '../../protocol/passport.ts';
import { isCanonicalTarget, parseOrigin } from '../../protocol/request-target.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { newJti, signTranscript } from '../../protocol/signing.ts';
import { formatTranscript, NOT_BOUND, parseTranscript, type Transcript } from '../../protocol/transcript.ts';
import { AUTHORIZATION_HEADER, PASSPORT_SCHEME } from '../../protocol/wire-names.ts';
import { type CallerProof, PROOF_ANSWER, PROOF_REQUEST, type ProofRequest } from '../broker-contract.ts';
import { type BrokerHeldKeys, createBrokerHeldKeys, type HeldKey } from '../broker-held-keys.ts';
import type { Connection } from '../broker-ports.ts';
import { BrokerProblem } from '../broker-problems.ts';
import { issuePassport } from '../issue-passport.ts';
import { importHolderKey } from '../proofs/proof-context.ts';
import { asHolderKey } from '../svid-signature.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import type { BrokerApp } from './broker-http.ts';
import { CALLER_PROBLEMS, type CallerRoutesOptions, verifiedCaller } from './caller-routes.ts';
import type { Decision } from './decision-record.ts';

/** Lifetime of a proof, the same as in the signing client. */
const PROOF_TTL_SECONDS = 60;

export function registerProofs(app: BrokerApp, options: CallerRoutesOptions): void {
  const { issuing, ports, recorder } = options;
  const heldKeys = createBrokerHeldKeys();
  app.post(
    '/v1/proofs',
    {
      config: {
        problems: [...CALLER_PROBLEMS, 'proofs_not_served', 'connection_not_direct', 'request_not_signable'],
      },
      schema: { summary: 'Sign a request', body: PROOF_REQUEST, response: { 200: PROOF_ANSWER } },
    },
    async (request) => {
      const { audience, proof } = request.body;
      const decision: Decision = { operation: 'proof', proof: proof.kind, audience };
      return recorder.recorded(request, decision, async () => {
        if (!issuing.settings.servesProofs) throw new BrokerProblem('proofs_not_served');
        requireDirect(ports.connectionOf(request.raw), request.body);
        const caller = await verifiedCaller(options, request, 'proof', audience, proof, decision);
        const nowSeconds = Math.floor(issuing.ports.nowMs() / 1000);
        const held = await heldKeyOf(options, heldKeys, caller, audience, nowSeconds);
        decision.passport = held.passport;
        decision.holderThumbprint = held.holder.publicKey.thumbprint;
        return signedProof(request.body, held, caller, issuing.settings.issuer, nowSeconds);
      });
    },
  );
}

function requireDirect(connection: Connection, { proof }: ProofRequest): void {
  const isDirect =
    connection.kind === 'unix_socket' || (connection.kind === 'tls' && isCallersOwn(connection, proof));
  if (!isDirect) throw new BrokerProblem('connection_not_direct');
}

/**
 * Whether the handshake proved the key that the caller proves. For a software key the certificate says nothing more: it may be
 * self-signed, and only its key counts. A program in between does not have that key.
 */
function isCallersOwn(
  { clientCertificates: [leaf], isResumed }: Extract<Connection, { kind: 'tls' }>,
  proof: CallerProof,
): boolean {
  if (proof.kind !== 'software_key') return proof.kind === 'mtls';
  if (leaf === undefined || isResumed) return false;
  const key = asHolderKey(new X509Certificate(leaf).publicKey);
  return key !== undefined && key.thumbprint === importHolderKey(proof.registered_jwk).thumbprint;
}

async function heldKeyOf(
  { issuing }: CallerRoutesOptions,
  heldKeys: BrokerHeldKeys,
  caller: VerifiedCaller,
  audience: string,
  nowSeconds: number,
): Promise<HeldKey> {
  const held = await heldKeys.heldFor(caller, audience, nowSeconds, ({ publicKey }) =>
    issuePassport(issuing, caller, publicKey, audience),
  );
  // Audit events show the thumbprint of this key, so operators may deny it.
  if (issuing.ports.denyList.deniesThumbprint(held.holder.publicKey.thumbprint)) {
    throw new BrokerProblem('caller_denied');
  }
  return held;
}

function signedProof(
  body: ProofRequest,
  { holder, passport }: HeldKey,
  caller: VerifiedCaller,
  issuer: string,
  nowSeconds: number,
) {
  const transcript: Transcript = {
    authSite: body.auth_site,
    keyId: passport.keyId,
    passportSha256: passportSha256(passport.jws),
    issuer,
    subject: caller.subject,
    audience: body.audience,
    routeId: body.route_id,
    method: body.request.method,
    ...urlParts(body.request.url),
    jti: newJti(),
    issuedAtSeconds: nowSeconds,
    // With several credentials of one key, this one may end before the passport.
    expiresAtSeconds: Math.min(
      nowSeconds + PROOF_TTL_SECONDS,
      passport.expiresAtSeconds,
      Math.floor(caller.credentialEndsMs / 1000),
    ),
    contentSha256: body.request.body_sha256 ?? NOT_BOUND,
    headers: body.request.headers
      .map(([name, value]) => ({ name: name.toLowerCase(), value }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
  if (transcript.expiresAtSeconds <= nowSeconds) throw new BrokerProblem('credential_ending');
  // A value with a line feed would add lines to the transcript.
  const bytes = Buffer.from(formatTranscript(transcript), 'utf8');
  if (parseTranscript(bytes, AUTHORIZATION_HEADER) === undefined) {
    throw new BrokerProblem('request_not_signable', 'method, header or hash does not fit into a transcript');
  }
  const proof = signTranscript(transcript, holder);
  return {
    headers: {
      Authorization: `${PASSPORT_SCHEME} ${passport.jws}`,
      'X-Proofgate-Transcript': proof.transcript,
      'X-Proofgate-Signature': proof.signature,
    },
    expires_at: formatTime(transcript.expiresAtSeconds),
  };
}

const URL_PARTS = /^(https?:\/\/[^/?#]*)(\/.*)$/s;

/** The URL in canonical spelling; its target is signed byte for byte. */
function urlParts(url: string): Pick<Transcript, 'scheme' | 'authority' | 'target'> {
  const [, originText = '', target = ''] = URL_PARTS.exec(url) ?? [];
  const origin = parseOrigin(originText);
  if (origin === undefined || !isCanonicalTarget(target)) {
    throw new BrokerProblem(
      'request_not_signable',
      'the URL is not canonical: docs/design/protocol.md, "Routes, origins, paths"',
    );
  }
  return { ...origin, target };
}
