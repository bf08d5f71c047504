/** Deltas onto the small bundle of the tests, and the resulting key table. */

import { signDelta, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { compileBundle, type LiveSnapshot } from '../../../src/bundle/compile/compile.ts';
import { prepareStep } from '../../../src/bundle/compile/compile-delta.ts';
import { reusingKeysOf } from '../../../src/bundle/compile/compile-keys.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { stepFile } from '../../../src/bundle/format/file-names.ts';
import { openStep } from '../../../src/bundle/format/open-document.ts';
import type {
  BundleContent,
  ClientContent,
  DeltaContent,
  DerivedKeyContent,
} from '../../../src/bundle/format/schema.ts';
import { TimeSlice } from '../../../src/bundle/format/time-slice.ts';
import { importPublicKey } from '../../../src/protocol/import-public-key.ts';
import type { PublicJwk, PublicKey } from '../../../src/protocol/public-key.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { AUTH_SITE, CLIENT_ISSUER, NOW_SECONDS, TRUST_DOMAIN } from '../fixtures/bundle-content.ts';

/** A delta that continues a position, one revision on, with nothing in it but what is given. */
export function deltaAfter(previous: ChainPosition, more: Partial<DeltaContent> = {}): DeltaContent {
  return {
    auth_site: AUTH_SITE,
    revision: previous.revision + 1,
    previous_head: previous.head,
    issued_at: formatTime(NOW_SECONDS),
    clients_put: [],
    clients_removed: [],
    keys_put: [],
    keys_removed: [],
    ...more,
  };
}

export function clientNamed(clientId: string, more: Partial<ClientContent> = {}): ClientContent {
  return {
    client_id: clientId,
    issuer: CLIENT_ISSUER,
    trust_domain: TRUST_DOMAIN,
    subject: `client:${clientId}`,
    grants: [{ resource: 'orders', access: 'read' }],
    ...more,
  };
}

export function keyNamed(
  keyId: string,
  clientId: string,
  jwk: PublicJwk,
  more: Partial<DerivedKeyContent> = {},
): DerivedKeyContent {
  const expires_at = formatTime(NOW_SECONDS + 3600);
  return { key_id: keyId, client_id: clientId, jwk, status: 'active', expires_at, ...more };
}

const imported = new Map<string, PublicKey | undefined>();

/** Tests use the same keys again and again; checking one costs a millisecond. */
function importOnce(jwk: PublicJwk): PublicKey | undefined {
  if (!imported.has(jwk.x)) imported.set(jwk.x, importPublicKey(jwk));
  return imported.get(jwk.x);
}

/** Compiles content as a whole bundle would be. */
export async function compiled(content: BundleContent, signer: SigningKey): Promise<LiveSnapshot> {
  const { position } = signWholeBundle(content, [signer]);
  return compileBundle(content, { file: 'bundle.jws', head: position.head, importKey: importOnce });
}

/** Signs, opens and applies. @throws BundleError when it is refused */
export async function applied(
  snapshot: LiveSnapshot,
  content: DeltaContent,
  signer: SigningKey,
): Promise<LiveSnapshot> {
  const { document } = signDelta(content, [signer]);
  const signers = { keys: [signer.publicKey], threshold: 1 };
  const file = stepFile('delta', content.revision);
  const step = openStep('delta', document, { file, signers, authSite: AUTH_SITE });
  const importKey = reusingKeysOf(snapshot.keys, importOnce);
  return (await prepareStep(snapshot, step, { importKey, slice: new TimeSlice() })).commit();
}

/** All that decisions can read of some names. */
export function tableOf(snapshot: LiveSnapshot, keyIds: readonly string[], clientIds: readonly string[]) {
  return {
    size: snapshot.keys.size,
    clients: clientIds.map((id) => snapshot.keys.client(id)),
    keys: keyIds.map((id) => {
      const key = snapshot.keys.get(id);
      if (key?.kind !== 'derived_key') return key;
      const { client, clientId, expiresAtSeconds, keyId, provenance, status } = key;
      return {
        client,
        clientId,
        expiresAtSeconds,
        keyId,
        provenance,
        status,
        thumbprint: key.key.thumbprint,
      };
    }),
    keysOfClients: clientIds.map((id) => [...snapshot.keys.keyIdsOf(id)].sort()),
  };
}
