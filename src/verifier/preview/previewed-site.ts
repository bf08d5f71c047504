/** One side of a preview: a site's content, compiled as a verifier compiles it, with what is known of its derived keys. */
import { compileBundle, type LiveSnapshot } from '../../bundle/compile/compile.ts';
import type { DerivedKey, IssuerKey, Route } from '../../bundle/compile/snapshot.ts';
import type { BundleContent } from '../../bundle/format/schema.ts';
import { RoutePlaces } from './route-places.ts';

/** A derived key as an operator sees it, without the key itself. */
export interface ListedKey
  extends Pick<DerivedKey, 'status' | 'expiresAtSeconds' | 'clientId' | 'provenance'> {
  /** RFC 7638 thumbprint. */
  readonly thumbprint: string;
}

export type PreviewedKey = IssuerKey | (ListedKey & Pick<DerivedKey, 'kind' | 'client'>);

export interface PreviewedSite {
  readonly snapshot: LiveSnapshot;
  /** By route_id. */
  readonly routes: ReadonlyMap<string, Route>;
  readonly places: RoutePlaces;
  /** Undefined for a derived key whose client is not in the content. */
  key(keyId: string): PreviewedKey | undefined;
}

/**
 * @param content without derived keys and shards
 * @param listed by key_id
 * @throws BundleError
 */
export async function previewedSite(
  content: BundleContent,
  listed: ReadonlyMap<string, ListedKey>,
  file: string,
): Promise<PreviewedSite> {
  const snapshot = await compileBundle(content, { file, head: '' });
  const routes = snapshot.routes.all();
  const keys = new Map<string, PreviewedKey>();
  for (const [keyId, key] of listed) {
    const client = snapshot.keys.client(key.clientId);
    if (client !== undefined) keys.set(keyId, { ...key, kind: 'derived_key', client });
  }
  return {
    snapshot,
    routes: new Map(routes.map((route) => [route.routeId, route])),
    places: new RoutePlaces(routes, content.origins),
    key(keyId) {
      return keys.get(keyId) ?? issuerKeyOf(snapshot, keyId);
    },
  };
}

function issuerKeyOf({ keys }: LiveSnapshot, keyId: string): IssuerKey | undefined {
  const key = keys.get(keyId);
  return key?.kind === 'issuer_key' ? key : undefined;
}
