/**
 * What a verifier's process set says of itself to Control, as the value of a request header: its ID, version, replay store,
 * public key and the settings that bound how long it uses a bundle, separated by spaces, such as
 * `q0Rf… version=0.4.0 replay_store=7Hc2… key=11qY… realtime_staleness=10 break_glass=no`.
 * The ID is computed from the key, so that no other key can speak for the instance.
 * Source: docs/design/bundle.md "Distribution".
 */
import { hash } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';

export interface InstanceReport {
  /** Of this run: 22 characters of base64url, {@link instanceIdOf} its key. */
  readonly instanceId: string;
  /** Of the package, such as `0.3.1`. */
  readonly version: string;
  /** ID that Redis keeps: 22 characters of base64url; `memory` for a store of this instance alone; undefined while unknown. */
  readonly replayStore: string | undefined;
  /** Undefined for a verifier that signs no acknowledgements. */
  readonly signing: SigningInstance | undefined;
}

export interface SigningInstance {
  /** Ed25519, 32 bytes, base64url. */
  readonly publicKey: string;
  /** `--realtime-staleness`, whole seconds. */
  readonly realtimeStalenessSeconds: number;
  /** Whether a break-glass key is pinned, so that a statement may let this instance use a stale bundle. */
  readonly hasBreakGlass: boolean;
}

export const MEMORY_STORE = 'memory';
const UNKNOWN_STORE = 'unknown';
const ID = '[A-Za-z0-9_-]{22}';
const ID_BYTES = 16;
const STORE_ID = new RegExp(`^${ID}$`);
const SIGNING = ' key=([A-Za-z0-9_-]{43}) realtime_staleness=([1-9][0-9]{0,9}) break_glass=(yes|no)';
const REPORT = new RegExp(
  `^(${ID}) version=([0-9A-Za-z.+-]{1,32}) replay_store=(${ID}|${MEMORY_STORE}|${UNKNOWN_STORE})(?:${SIGNING})?$`,
);

/** Whether the text can be an ID that Redis keeps. */
export function isStoreId(text: string): boolean {
  return STORE_ID.test(text);
}

/** The first half of the key's SHA-256. @param publicKey base64url */
export function instanceIdOf(publicKey: string): string {
  const digest = hash('sha256', Buffer.from(publicKey, 'base64url'), 'buffer');
  return digest.subarray(0, ID_BYTES).toString('base64url');
}

export function instanceText({
  instanceId,
  replayStore = UNKNOWN_STORE,
  signing,
  version,
}: InstanceReport): string {
  const text = `${instanceId} version=${version} replay_store=${replayStore}`;
  return signing === undefined ? text : `${text} ${signingText(signing)}`;
}

/** Key and settings as in the header, which acknowledgements sign. */
export function signingText(instance: SigningInstance): string {
  const { hasBreakGlass, publicKey, realtimeStalenessSeconds } = instance;
  const breakGlass = hasBreakGlass ? 'yes' : 'no';
  return `key=${publicKey} realtime_staleness=${realtimeStalenessSeconds} break_glass=${breakGlass}`;
}

/** Undefined for a text in another form, and for an ID of another key. */
export function parseInstance(text: string): InstanceReport | undefined {
  const [, instanceId, version, store, publicKey, staleness, breakGlass] = REPORT.exec(text) ?? [];
  if (instanceId === undefined || version === undefined) return undefined;
  const replayStore = store === UNKNOWN_STORE ? undefined : store;
  if (publicKey === undefined) return { instanceId, version, replayStore, signing: undefined };
  // A second spelling of the same key would be another text.
  if (decodeBase64url(publicKey) === undefined || instanceIdOf(publicKey) !== instanceId) return undefined;
  const signing = {
    publicKey,
    realtimeStalenessSeconds: Number(staleness),
    hasBreakGlass: breakGlass === 'yes',
  };
  return { instanceId, version, replayStore, signing };
}
