/** The driver of the Node SDK; ../README.md describes it. Runs the compiled modules. */
import { createInterface } from 'node:readline';
import { Signer } from '../../../../dist/caller/sdk/signer.js';
import { SignerError } from '../../../../dist/caller/sdk/signer-error.js';

const [, , keyFile = '', proof] = process.argv;
/** The request that is being signed. */
let job;
const signer = await Signer.open(
  { keyFile, proof },
  { nowMs: () => (job?.now ?? Date.now() / 1000) * 1000, newJti: () => job.jti },
);

for await (const line of createInterface({ input: process.stdin })) {
  job = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ id: job.id, ...(await answerTo(job)) })}\n`);
}

async function answerTo({ body_base64, dpop_nonce, headers, method, url }) {
  const body = body_base64 === null ? undefined : Buffer.from(body_base64, 'base64');
  try {
    const signed = await signer.sign({ method, url, headers, body, dpopNonce: dpop_nonce });
    const transcript = Buffer.from(signed['X-Proofgate-Transcript'] ?? '', 'base64url');
    return { headers: Object.entries(signed), transcript_base64: transcript.toString('base64') };
  } catch (error) {
    if (!(error instanceof SignerError)) throw error;
    return { headers: [], transcript_base64: '', error: error.code };
  }
}
