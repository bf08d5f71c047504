/** A folder with keys and bundles for each test, and brokers and callers that end with it. */
import { afterEach, beforeEach } from '@jest/globals';
import {
  type BrokerFolder,
  type BrokerProgram,
  Caller,
  makeBrokerFolder,
  startBrokerProgram,
} from '../../support/broker/broker-program.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { waitFor } from '../../support/wait.ts';

export const ORDERS = 'spiffe://shop.example/orders';

export let authority: SpiffeAuthority;
export let folder: BrokerFolder;
export const running: BrokerProgram[] = [];
export const callers: Caller[] = [];

beforeEach(async () => {
  authority = SpiffeAuthority.create('shop.example');
  folder = await makeBrokerFolder(authority);
});
afterEach(async () => {
  for (const caller of callers.splice(0)) caller.close();
  await Promise.all(running.splice(0).map(({ child }) => child.stop()));
  await folder.remove();
});

export async function start(...flags: string[]): Promise<BrokerProgram> {
  const broker = await startBrokerProgram(folder, { flags });
  running.push(broker);
  return broker;
}

/** A workload with an SVID of the authority. */
export function workload(of = authority, content = {}): Caller {
  return callerWith(of.issueSvid('/orders', content).pem);
}

export function callerWith(svid?: { readonly cert: string; readonly key: string }): Caller {
  const caller = new Caller(folder.tls.ca.cert, svid);
  callers.push(caller);
  return caller;
}

export function eventually(what: string, probe: () => Promise<boolean>): Promise<unknown> {
  return waitFor(what, async () => ((await probe()) ? true : undefined));
}

interface Jwk {
  readonly kid: string;
  readonly trust_domain: string;
}

export async function jwksOf({ url }: BrokerProgram): Promise<{ readonly keys: readonly Jwk[] }> {
  const { body } = await callerWith().call(url, '/jwks.json');
  return body as { readonly keys: readonly Jwk[] };
}
