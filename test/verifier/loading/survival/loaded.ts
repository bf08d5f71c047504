/** What is loaded, as far as decisions can see it: compared before and after, by value. */
import type { Snapshot } from '../../../../src/bundle/compile/snapshot.ts';
import { ORIGIN } from '../../../fakes/bundle-content.ts';

export type Loaded = { readonly [name: string]: unknown } | undefined;

const KEY_IDS = ['broker-1', 'dk_billing', 'dk_shard', 'dk_delta'];
const REQUESTS = [
  ['GET', '/v1/orders/17'],
  ['POST', '/v1/orders'],
  ['GET', '/v1/other'],
] as const;

export function loadedOf(snapshot: Snapshot | undefined): Loaded {
  if (snapshot === undefined) return undefined;
  const { keys, routes, ...values } = snapshot;
  const described = {
    ...values,
    routes: [routes.size, ...REQUESTS.map(([method, path]) => routes.match(method, ORIGIN, path))],
    keys: [keys.size, ...KEY_IDS.map((id) => keyOf(snapshot, id))],
  };
  return JSON.parse(JSON.stringify(described, asPlain));
}

function keyOf({ keys }: Snapshot, keyId: string): unknown {
  const found = keys.get(keyId);
  if (found === undefined) return 'none';
  const { key, ...others } = found;
  return found.kind === 'derived_key'
    ? { ...others, client: found.client, clientId: found.clientId, thumbprint: key.thumbprint }
    : { ...others, thumbprint: key.thumbprint };
}

function asPlain(_name: string, value: unknown): unknown {
  if (value instanceof Set) return [...value];
  return value instanceof Map ? [...value] : value;
}
