/** Names of a bundle's files. Source: docs/design/bundle.md "Signed documents". */

export const BUNDLE_FILE = 'bundle.jws';
export const FRESHNESS_FILE = 'freshness.jws';
/** Name in errors: the file may have any. */
export const BREAK_GLASS_FILE = 'break-glass.jws';
/** In a state directory: link to the current base. */
export const CURRENT_LINK = 'current';
const SHARD_FILE = /^keys-[0-9]{4}\.jsonl$/;
const STEP_FILE = /^(delta|link)-([1-9][0-9]{0,15})\.jws$/;

export type StepKind = 'delta' | 'link';

export function isShardFile(name: string): boolean {
  return SHARD_FILE.test(name);
}

export function stepFile(kind: StepKind, revision: number): string {
  return `${kind}-${revision}.jws`;
}

export interface StepName {
  readonly name: string;
  readonly kind: StepKind;
  readonly revision: number;
}

/** Parses the name of a step's file; undefined for any other name. */
export function readStepName(name: string): StepName | undefined {
  const [, kind, digits] = STEP_FILE.exec(name) ?? [];
  const revision = Number(digits);
  if ((kind !== 'delta' && kind !== 'link') || !Number.isSafeInteger(revision)) return undefined;
  return { name, kind, revision };
}
