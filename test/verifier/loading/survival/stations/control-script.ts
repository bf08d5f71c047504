/** What a hostile Control says: answers that each lead somewhere else, so that each is tried. */
import { randomBytes } from 'node:crypto';
import type { ChainPosition } from '../../../../../src/bundle/format/chain.ts';
import type { DistributedStep, PollAnswer } from '../../../../../src/bundle/format/distribution-contract.ts';
import { readStepName } from '../../../../../src/bundle/format/file-names.ts';
import { AUTH_SITE, NOW_SECONDS } from '../../../../support/fixtures/bundle-content.ts';
import { type SignedChain, TARGETS, type Target } from '../signed-chain.ts';
import type { Answering, HostileControl } from './hostile-control.ts';

export const SHARD: Target = 'keys-0001.jsonl';
/** A verifier waits after statements in a row that make nothing younger: each so many there is one that does. */
const YOUNGER_EVERY = 4;
const CLAIMED_REVISION = 9;

export type Documents = ReadonlyMap<Target, Buffer>;

/** Steps and statements travel as text in JSON. */
export const asText = (bytes: Buffer): string => bytes.toString('utf8');

export class ControlScript {
  readonly #chain: SignedChain;
  readonly #control: HostileControl;
  #standing: ChainPosition;
  #statements = 0;
  #claims = 0;

  constructor(chain: SignedChain, control: HostileControl) {
    this.#chain = chain;
    this.#control = control;
    this.#standing = chain.old.position;
  }

  oldBundle(): Answering {
    const { bundle, position } = this.#chain.old;
    const files = this.#control.offering(new Map([['bundle.jws', bundle]]));
    return once({ ...this.#answer(position), whole: { ...position, files, steps: [], required: true } });
  }

  /** All up to a document, sound; from now on statements are about where that leads. */
  leadTo(last: Target, standing: ChainPosition): Answering {
    const documents = new Map(TARGETS.map((name) => [name, this.#chain.documents[name]]));
    const answer = this.#whole(documents, stepsUpTo(documents, last));
    this.#standing = standing;
    return once(answer);
  }

  /** One document and what it needs, by the way that such documents take. */
  offer(documents: Documents, target: Target): Answering {
    if (target === 'freshness.jws') return this.#statement(asText(documents.get(target) ?? Buffer.alloc(0)));
    const steps = stepsUpTo(documents, target);
    if (target === 'bundle.jws' || target === SHARD) return once(this.#whole(documents, steps));
    return this.stepThenWhole(documents, steps.slice(-1), steps);
  }

  #whole(documents: Documents, steps: DistributedStep[]) {
    const files = new Map<string, Buffer>();
    for (const name of ['bundle.jws', SHARD] as const)
      files.set(name, documents.get(name) ?? Buffer.alloc(0));
    // The verifier fetches a shard only when its stated hash is the one in the bundle: the answer states that hash, or the true
    // one.
    const claimed = new Map(files).set(SHARD, this.#chain.documents[SHARD]);
    this.#claims += 1;
    const named = this.#control.offering(files, this.#claims % 2 === 0 ? files : claimed);
    const position = newPosition();
    const whole = { ...position, files: named, steps, required: true };
    return { ...this.#answer(position), whole };
  }

  /** A step to the current position. When the verifier rejects it, it requests the whole bundle, which has the same step. */
  stepThenWhole(documents: Documents, steps: DistributedStep[], stepsOfWhole: DistributedStep[]): Answering {
    const left: (() => PollAnswer)[] = [
      () => ({ ...this.#answer(newPosition()), steps }),
      () => this.#whole(documents, stepsOfWhole),
    ];
    return (isAskedForWhole) => (isAskedForWhole === (left.length === 1) ? left.shift()?.() : undefined);
  }

  #statement(text: string): Answering {
    return once({ ...this.#answer(this.#standing), freshness: text });
  }

  /** A valid statement about the loaded bundle. */
  soundStatement(): Answering {
    return once(this.#answer(this.#standing));
  }

  #answer(position: ChainPosition) {
    const asOfSeconds = NOW_SECONDS + 100 + Math.floor(this.#statements / YOUNGER_EVERY);
    this.#statements += 1;
    const freshness = asText(this.#chain.statement(this.#standing, asOfSeconds));
    return { auth_site: AUTH_SITE, ...position, steps: [] as DistributedStep[], freshness };
  }
}

function once(answer: PollAnswer): Answering {
  let isSaid = false;
  return () => {
    if (isSaid) return undefined;
    isSaid = true;
    return answer;
  };
}

export function stepsUpTo(documents: Documents, last: Target): DistributedStep[] {
  return TARGETS.slice(0, TARGETS.indexOf(last) + 1).flatMap((name) => {
    const step = readStepName(name);
    const document = asText(documents.get(name) ?? Buffer.alloc(0));
    return step === undefined ? [] : [{ kind: step.kind, revision: step.revision, document }];
  });
}

function newPosition(): ChainPosition {
  return { revision: CLAIMED_REVISION, head: randomBytes(32).toString('base64url') };
}
