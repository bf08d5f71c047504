/** Opens the key, routes, address and protocols that the flags of `proofgate conformance` name. */

import { parseRequestUrl, type RequestUrl } from '../../caller/request-url.ts';
import { parseHeaderLine, type RequestHeader } from '../../caller/sign/request-headers.ts';
import { certificateChecks } from '../../caller/sign/send-request.ts';
import { readCaFile } from '../../process/files/input-files.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';
import { type Deployment, speaksHttp2 } from '../../tools/conformance/public-run.ts';
import { requireSegment, subjectOfDeployment } from '../../tools/conformance/public-subject.ts';
import { PROTOCOLS, type Protocol, type PublicNeed } from '../../tools/conformance/wire/conformance-case.ts';
import type { WireAddress } from '../../tools/conformance/wire/exchange.ts';
import { parseConnectAddress } from '../signing/connect-address.ts';
import { readLocalCaller } from '../signing/signing-caller.ts';
import { profileChoice, type SignerValues, signerFor } from '../signing/signing-inputs.ts';

export interface DeploymentValues extends SignerValues {
  readonly target: string;
  readonly method: string;
  readonly proof: ProofFormat;
  readonly writeTarget: string | undefined;
  readonly writeMethod: string;
  readonly headers: readonly string[];
  readonly timeoutMs: number;
  readonly caFile: string | undefined;
  readonly connectTo: string | undefined;
}

export interface OpenDeployment {
  readonly deployment: Deployment;
  readonly url: RequestUrl;
  readonly protocols: readonly Protocol[];
}

/** @throws CliError, ClientError, EnrollError */
export async function openDeployment(values: DeploymentValues): Promise<OpenDeployment> {
  const { method, target, timeoutMs, writeMethod, writeTarget } = values;
  const caller = await readLocalCaller(values);
  requireSegment(parseRequestUrl(target));
  const choice = profileChoice(values);
  const { brokerPassport, holderKey, profiles } = await signerFor({ method, url: target, choice }, caller);
  const headers = values.headers.map((line): RequestHeader => parseHeaderLine(line));
  const write = writeTarget === undefined ? undefined : { method: writeMethod, url: writeTarget };
  let dpopNonce: string | undefined;
  const { subject, url } = subjectOfDeployment({
    ...{ profiles, choice, holderKey, brokerPassport },
    ...{ method, url: target, write, headers, dpopNonce: () => dpopNonce },
  });
  const address = await addressOf(values, url);
  const has = new Set<PublicNeed>();
  if (write !== undefined) has.add('write_route');
  if (brokerPassport === undefined) has.add('own_passport');
  const protocols = url.scheme === 'https' && (await speaksHttp2(address, timeoutMs)) ? PROTOCOLS : H1;
  const takeNonce = (nonce: string) => {
    dpopNonce = nonce;
    has.add('dpop_nonce');
  };
  const deployment = { address, subject, has, timeoutMs, proof: values.proof, takeNonce };
  return { deployment, url, protocols };
}

const H1: readonly Protocol[] = ['HTTP/1.1'];

async function addressOf({ caFile, connectTo }: DeploymentValues, url: RequestUrl): Promise<WireAddress> {
  const { host, port } = parseConnectAddress(connectTo) ?? url;
  const caPem = await readCaFile(caFile);
  return url.scheme === 'http' ? { host, port } : { host, port, tls: certificateChecks(url, caPem) };
}
