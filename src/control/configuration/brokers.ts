/** Brokers of a site: issuers that sign passports for others. */
import Type from 'typebox';
import { BROKER_DEFINITION, type BrokerDefinition, type BrokerView } from '../api/contract/routes.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Operation } from '../operation.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { refuseOddPrefixes } from './canonical-subjects.ts';
import {
  audited,
  type ConfigurationDeps,
  found,
  newVersion,
  nextVersion,
  publishChange,
  requireVersion,
  versionOf,
} from './change.ts';
import { storedDefinition } from './stored-definition.ts';

export interface BrokerName {
  readonly siteId: string;
  readonly issuer: string;
}

export class Brokers {
  readonly #deps: ConfigurationDeps;

  constructor(deps: ConfigurationDeps) {
    this.#deps = deps;
  }

  list(siteId: string, page: Page): Promise<readonly RowOf<'broker'>[]> {
    return this.#deps.store.read((tx) => tx.brokers.list({ siteId }, page));
  }

  async get({ siteId, issuer }: BrokerName): Promise<BrokerView> {
    return brokerView(found(await this.#deps.store.read((tx) => tx.brokers.find(siteId, issuer))));
  }

  /**
   * @param version that the change was made from; undefined for a new broker
   * @throws Refusal `precondition_required`, `precondition_failed`, `definition_invalid`
   */
  put(
    operation: Operation,
    name: BrokerName,
    version: number | undefined,
    definition: BrokerDefinition,
  ): Promise<{ readonly view: BrokerView; readonly created: boolean }> {
    const { store, nowMs, siteCheck } = this.#deps;
    const { siteId, issuer } = name;
    const now = nowMs();
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      await refuseOwnIssuer(tx, name);
      const known = await tx.brokers.find(siteId, issuer);
      const text = JSON.stringify({ issuer, ...definition });
      const row = await write(tx, { siteId, issuer, definition: text }, { known, version, nowMs: now });
      refuseOddPrefixes(definition);
      await siteCheck(tx, siteId);
      await publishChange(tx, siteId, { kind: 'policy' }, now);
      const after = brokerView(row);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const what = known === undefined ? 'broker.create' : 'broker.change';
      const before = known && brokerView(known);
      const entry = audited(operation, { what, id: issuer, place, ...(before && { before }), after });
      return { result: { view: after, created: known === undefined }, audit: [entry] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, issuer }: BrokerName, version: number): Promise<void> {
    const { store, nowMs } = this.#deps;
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = found(await tx.brokers.find(siteId, issuer));
      requireVersion(row, version);
      await tx.brokers.remove(siteId, issuer);
      await publishChange(tx, siteId, { kind: 'policy' }, nowMs());
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const entry = audited(operation, {
        what: 'broker.delete',
        id: issuer,
        place,
        before: brokerView(row),
      });
      return { result: undefined, audit: [entry] };
    });
  }
}

/** A broker must not be able to mint a client, also on a site that has none yet. @throws Refusal `definition_invalid` */
async function refuseOwnIssuer(tx: Transaction, { siteId, issuer }: BrokerName): Promise<void> {
  const { issuerUrl } = found(await tx.sites.find(siteId));
  if (issuer !== issuerUrl) return;
  const reason = "the site's own issuer, whose passports derived keys sign";
  throw new Refusal('definition_invalid', undefined, { faults: [{ pointer: '/path/issuer', reason }] });
}

async function write(
  tx: Transaction,
  content: Pick<RowOf<'broker'>, 'siteId' | 'issuer' | 'definition'>,
  state: {
    readonly known: RowOf<'broker'> | undefined;
    readonly version: number | undefined;
    readonly nowMs: number;
  },
): Promise<RowOf<'broker'>> {
  const { known, version, nowMs } = state;
  if (known === undefined) {
    if (version !== undefined) throw new Refusal('precondition_failed');
    const row = { ...content, ...newVersion(nowMs) };
    await tx.brokers.add(row);
    return row;
  }
  if (version === undefined) throw new Refusal('precondition_required');
  requireVersion(known, version);
  await tx.brokers.change(known, { definition: content.definition }, nowMs);
  return { ...content, ...nextVersion(known, nowMs) };
}

const readStored = storedDefinition(
  Type.Object({ issuer: Type.String(), ...BROKER_DEFINITION.properties }, { additionalProperties: false }),
);

export function brokerView(row: RowOf<'broker'>): BrokerView {
  const { issuer, ...definition } = readStored(row.definition);
  return { site_id: row.siteId, issuer, definition, ...versionOf(row) };
}
