/** Operators list, rotate and retire a site's signing keys here. The publisher creates them and signs with them. */
import type {
  SigningKeyResource,
  SigningKeyRetirement,
  SigningKeyRotation,
} from '../contract/hierarchy-contract.ts';
import type { SigningKeyView, SiteSigningKeys } from '../publishing/bundle-signing-keys.ts';
import { audited, momentOf, requireRow } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import type { ControlStore } from '../store/port.ts';

export interface SigningKeysDeps {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly keyring: SiteSigningKeys;
}

export class SigningKeyAdministration {
  readonly #deps: SigningKeysDeps;

  constructor(deps: SigningKeysDeps) {
    this.#deps = deps;
  }

  /** @param use `receipts`: those that auditors need, with retired ones; otherwise those that verifiers pin */
  async list(siteId: string, use: 'verifiers' | 'receipts'): Promise<SigningKeyResource[]> {
    const { store, keyring } = this.#deps;
    const keys = await store.read((tx) => keyring.ofSite(tx, siteId));
    return keys.filter(({ purpose }) => (purpose === 'receipt') === (use === 'receipts')).map(signingKeyView);
  }

  rotate(operation: Operation, siteId: string, rotation: SigningKeyRotation): Promise<SigningKeyResource> {
    const { store, keyring, nowMs } = this.#deps;
    const { purpose, retiring_seconds: retiringSeconds } = rotation;
    const now = nowMs();
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const place = requireRow(await tx.hierarchy.placeOfSite(siteId));
      const retiring = retiringSeconds === undefined ? {} : { retiringMs: retiringSeconds * 1000 };
      const after = signingKeyView(await keyring.rotate(tx, siteId, purpose, { nowMs: now, ...retiring }));
      const entry = audited(operation, {
        what: 'signing_key.rotate',
        id: after.signing_key_id,
        place,
        after,
      });
      return { result: after, audit: [entry] };
    });
  }

  /** @throws ApiProblem `not_found`, `signing_key_state_conflict` unless the key is retiring at a later time */
  retire(
    operation: Operation,
    siteId: string,
    id: string,
    { retiring_seconds: retiringSeconds = 0 }: SigningKeyRetirement,
  ): Promise<SigningKeyResource> {
    const { store, keyring, nowMs } = this.#deps;
    const options = { nowMs: nowMs(), retiringMs: retiringSeconds * 1000 };
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const place = requireRow(await tx.hierarchy.placeOfSite(siteId));
      const changed = await keyring.retire(tx, siteId, id, options);
      const [before, after] = [signingKeyView(changed.before), signingKeyView(changed.after)];
      const entry = audited(operation, { what: 'signing_key.retire', id, place, before, after });
      return { result: after, audit: [entry] };
    });
  }
}

function signingKeyView(key: SigningKeyView): SigningKeyResource {
  return {
    signing_key_id: key.id,
    purpose: key.purpose,
    state: key.state,
    thumbprint: key.thumbprint,
    jwk: { kty: 'OKP', crv: 'Ed25519', x: key.jwk.x },
    created_at: momentOf(key.createdAtMs),
    ...(key.retireAtMs === undefined ? {} : { retire_at: momentOf(key.retireAtMs) }),
  };
}
