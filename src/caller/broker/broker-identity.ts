/** Opens the identity source that the settings name: a registered key in a file, or the Workload API. */

import { readCaFile } from '../../process/files/input-files.ts';
import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { fetchJwtSvids } from '../../spiffe/workload-api/jwt-svids.ts';
import { watchX509Svids } from '../../spiffe/workload-api/x509-svids.ts';
import type { BrokerCallPlan, SvidProof } from './broker-settings.ts';
import { softwareKeyProver } from './caller-prover.ts';
import type { CallerIdentity, IdentitySource } from './identity-source.ts';
import { type CallerWorkloadApi, SvidSource } from './svid-source.ts';

/** @param defaultProof proof with an SVID when the settings name none */
export function openIdentitySource(
  { brokerSpiffeId, caFile, source }: BrokerCallPlan,
  defaultProof: SvidProof,
): IdentitySource {
  if (source.kind === 'key') return keyFileSource(source.file, caFile);
  return new SvidSource({
    api: workloadApiAt(source.socket),
    choice: { spiffeId: source.svidId, hint: source.svidHint },
    proof: source.proof ?? defaultProof,
    brokerSpiffeId,
    readCaPem: () => readCaFile(caFile),
    nowMs: () => Date.now(),
  });
}

/** Reads both files for each use, so that replacing them needs no restart. */
function keyFileSource(file: string, caFile: string | undefined): IdentitySource {
  return {
    current: async (): Promise<CallerIdentity> => ({
      prover: softwareKeyProver(await readSigningKeyFile(file)),
      svid: undefined,
      trust: { caPem: await readCaFile(caFile) },
    }),
    onChange: () => () => {},
    close: () => {},
  };
}

function workloadApiAt(socket: string): CallerWorkloadApi {
  return {
    watch: (handlers) => watchX509Svids(socket, handlers),
    jwtSvid: async (audience, spiffeId) => {
      const signal = new AbortController().signal;
      const [first] = await fetchJwtSvids(socket, { audience, spiffeId, signal });
      return first?.token ?? '';
    },
  };
}
