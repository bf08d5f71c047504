/**
 * A holder key with its passports. They are one object, so that a caller never combines a key with the passport of
 * another key.
 */
import type { SigningKey } from '../../protocol/signing.ts';
import { ServiceHttp } from '../service/service-http.ts';
import type { ServiceUrl } from '../service/service-url.ts';
import type { IssuedPassport } from './broker-answers.ts';
import { BrokerClient } from './broker-client.ts';
import type { CallerIdentity } from './identity-source.ts';

export interface PassportSet {
  readonly key: SigningKey;
  readonly svid: CallerIdentity['svid'];
  /** One passport for each audience. */
  readonly passports: readonly IssuedPassport[];
  /** Signing profile files, as JSON values. */
  readonly profileDocuments: readonly unknown[];
}

export interface BrokerCall {
  readonly url: ServiceUrl;
  readonly identity: CallerIdentity;
  readonly stop: AbortSignal;
}

/** Timeout of one exchange. */
const EXCHANGE_TIMEOUT_MS = 5000;

/** Opens a connection for the caller and closes it afterwards. @throws ClientError `ca_invalid`, and as `use` */
export async function withBroker<T>(
  { identity, stop, url }: BrokerCall,
  use: (broker: BrokerClient) => Promise<T>,
): Promise<T> {
  const { prover, trust } = identity;
  const { proof } = prover;
  const http = new ServiceHttp({
    url,
    ...trust,
    ...(proof.kind === 'connection' ? { clientCertificate: proof.clientCertificate } : {}),
  });
  try {
    const timeoutMs = EXCHANGE_TIMEOUT_MS;
    return await use(new BrokerClient({ http, brokerUrl: url.text, prover, timeoutMs, stop }));
  } finally {
    await http.close();
  }
}
