/**
 * Holds the trust bundles of several sources, and uses only one source for each trust domain.
 *
 * A source that claims trust domains is their only source: while it has no bundle for one of them, there is none. The
 * other sources, such as the Workload API, serve all other trust domains, the first one that has a bundle.
 */
import type { JwtAuthority, TrustBundle, TrustBundles } from '../trust-bundles.ts';

/** Replaces all bundles of one source. */
export type UpdateBundles = (bundles: readonly TrustBundle[]) => void;

export class BundleStore implements TrustBundles {
  readonly #sources: Map<string, TrustBundle>[] = [];
  readonly #claims = new Map<string, Map<string, TrustBundle>>();
  readonly #listeners = new Set<() => void>();
  #generation = 0;

  get generation(): number {
    return this.#generation;
  }

  /**
   * @param claims trust domains that only this source serves; without claims it serves those that no source claims
   * @throws Error when another source claims one of them
   */
  addSource(claims: readonly string[] = []): UpdateBundles {
    const held = new Map<string, TrustBundle>();
    for (const trustDomain of claims) {
      if (this.#claims.has(trustDomain)) throw new Error(`two sources claim trust domain ${trustDomain}`);
      this.#claims.set(trustDomain, held);
    }
    if (claims.length === 0) this.#sources.push(held);
    return (bundles) => this.#replace(held, bundles);
  }

  bundleOf(trustDomain: string): TrustBundle | undefined {
    const claimed = this.#claims.get(trustDomain);
    if (claimed !== undefined) return claimed.get(trustDomain);
    return this.#sources.find((source) => source.has(trustDomain))?.get(trustDomain);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #replace(held: Map<string, TrustBundle>, bundles: readonly TrustBundle[]): void {
    const isSame =
      held.size === bundles.length &&
      bundles.every((bundle) => isSameBundle(held.get(bundle.trustDomain), bundle));
    // Every refresh updates a bundle, but only changed content requires that connections are verified again.
    if (isSame) return;
    held.clear();
    for (const bundle of bundles) held.set(bundle.trustDomain, bundle);
    this.#generation += 1;
    for (const listener of this.#listeners) listener();
  }
}

/** Whether two bundles have the same authorities, in any order. */
export function isSameBundle(a: TrustBundle | undefined, b: TrustBundle): boolean {
  return a !== undefined && contentOf(a) === contentOf(b);
}

function contentOf({ x509Authorities, jwtAuthorities }: TrustBundle): string {
  const x509 = x509Authorities.map(({ x509: { fingerprint256 } }) => fingerprint256);
  return JSON.stringify([x509.sort(), jwtAuthorities.map(keyText).sort()]);
}

function keyText({ kid, publicKey }: JwtAuthority): string {
  return `${kid} ${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`;
}
