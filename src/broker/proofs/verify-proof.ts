/** Verifies a caller's proof of any kind. */
import type { CallerProof } from '../broker-contract.ts';
import type { VerifiedCaller } from '../verified-caller.ts';
import { verifyJwtSvidProof } from './jwt-svid.ts';
import { verifyMtls } from './mtls.ts';
import type { ProofContext, ProvedRequest } from './proof-context.ts';
import { verifySignedForm } from './signed-form.ts';
import { verifySoftwareKey } from './software-key.ts';

/** @throws HttpProblem when the proof does not prove the caller */
export async function verifyProof(
  context: ProofContext,
  request: ProvedRequest,
  proof: CallerProof,
): Promise<VerifiedCaller> {
  switch (proof.kind) {
    case 'mtls':
      return verifyMtls(context, request);
    case 'signed_form':
      return verifySignedForm(context, request, proof);
    case 'jwt_svid':
      return verifyJwtSvidProof(context, request, proof);
    case 'software_key':
      return verifySoftwareKey(context, request, proof);
  }
}
