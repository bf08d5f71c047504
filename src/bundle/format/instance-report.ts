/**
 * What a verifier's process set says of itself to Control, as the value of a request header: its ID, version and replay store,
 * separated by spaces, such as `q0Rf… version=0.3.1 replay_store=7Hc2…`.
 * Source: docs/design/bundle.md "Distribution".
 */

export interface InstanceReport {
  /** Random, of this run: 22 characters of base64url. */
  readonly instanceId: string;
  /** Of the package, such as `0.3.1`. */
  readonly version: string;
  /** ID that Redis keeps: 22 characters of base64url; `memory` for a store of this instance alone; undefined while unknown. */
  readonly replayStore: string | undefined;
}

export const MEMORY_STORE = 'memory';
const UNKNOWN_STORE = 'unknown';
const ID = '[A-Za-z0-9_-]{22}';
const STORE_ID = new RegExp(`^${ID}$`);
const REPORT = new RegExp(
  `^(${ID}) version=([0-9A-Za-z.+-]{1,32}) replay_store=(${ID}|${MEMORY_STORE}|${UNKNOWN_STORE})$`,
);

/** Whether the text can be an ID that Redis keeps. */
export function isStoreId(text: string): boolean {
  return STORE_ID.test(text);
}

export function instanceText({ instanceId, replayStore = UNKNOWN_STORE, version }: InstanceReport): string {
  return `${instanceId} version=${version} replay_store=${replayStore}`;
}

/** Undefined for a text in another form. */
export function parseInstance(text: string): InstanceReport | undefined {
  const [, instanceId, version, store] = REPORT.exec(text) ?? [];
  if (instanceId === undefined || version === undefined) return undefined;
  return { instanceId, version, replayStore: store === UNKNOWN_STORE ? undefined : store };
}
