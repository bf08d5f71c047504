/** Brokers of a site: external issuers that sign passports. */
import Type from 'typebox';
import {
  BROKER_DEFINITION,
  type BrokerDefinition,
  type BrokerView,
} from '../../api-contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { type ConfigurationDeps, found, placeInSite, versionOf } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import { siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { rejectOddPrefixes } from './canonical-subjects.ts';
import { storedDefinition } from './stored-definition.ts';

export interface BrokerName {
  readonly siteId: string;
  readonly issuer: string;
}

export class Brokers extends VersionedResource<'broker', 'broker', BrokerView> {
  readonly #siteCheck: ConfigurationDeps['siteCheck'];

  constructor(deps: ConfigurationDeps) {
    super(deps, {
      audited: 'broker',
      table: (tx) => tx.brokers,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ issuer }) => issuer,
      view: (_tx, row) => brokerView(row),
    });
    this.#siteCheck = deps.siteCheck;
  }

  list(siteId: string, page: Page): Promise<readonly BrokerView[]> {
    return this.listRows((tx) => tx.brokers.list({ siteId }, page));
  }

  /**
   * @param version the change is based on; undefined for a new broker
   * @throws ApiProblem `precondition_required`, `precondition_failed`, `definition_invalid`
   */
  put(operation: Operation, name: BrokerName, version: number | undefined, content: BrokerDefinition) {
    const { siteId, issuer } = name;
    return this.putRow(operation, [siteId, issuer], version, async (tx) => {
      await rejectOwnIssuer(tx, name);
      const definition = JSON.stringify({ issuer, ...content });
      return {
        set: { definition },
        add: (first) => tx.brokers.add({ siteId, issuer, definition, ...first }),
        check: async () => {
          rejectOddPrefixes(content);
          await this.#siteCheck(tx, siteId);
        },
        publish: { kind: 'policy' },
      };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, { siteId, issuer }: BrokerName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, issuer], version, async () => ({
      publish: { kind: 'policy' },
    }));
  }
}

/** A broker must not sign as the site's own issuer, even if the site has no clients yet. @throws ApiProblem `definition_invalid` */
async function rejectOwnIssuer(tx: Transaction, { siteId, issuer }: BrokerName): Promise<void> {
  const { issuerUrl } = found(await tx.sites.find(siteId));
  if (issuer !== issuerUrl) return;
  const reason = "the site's own issuer, whose passports derived keys sign";
  throw new ApiProblem('definition_invalid', undefined, { faults: [{ pointer: '/path/issuer', reason }] });
}

const readStored = storedDefinition(
  Type.Object({ issuer: Type.String(), ...BROKER_DEFINITION.properties }, { additionalProperties: false }),
);

function brokerView(row: RowOf<'broker'>): BrokerView {
  const { issuer, ...definition } = readStored(row.definition);
  return { site_id: row.siteId, issuer, definition, ...versionOf(row) };
}
