/** The mix of requests that a campaign sends: properly signed, unsigned, tampered and replayed ones. */

import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import type { Caller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withHeader } from '../../support/site/signed-request.ts';
import type { Site } from '../../support/site/site.ts';

export type RequestKind = 'valid' | 'unsigned' | 'tampered' | 'replayed';

export interface PlannedRequest {
  readonly kind: RequestKind;
  /** Of the proof; a replayed request has the number of the one that it repeats. */
  readonly number: number;
  readonly request: WireRequest;
}

/** Of eight: one is unsigned, one tampered with, two are presented a second time. */
const MIX: readonly RequestKind[] = [
  'valid',
  'replayed',
  'valid',
  'tampered',
  'valid',
  'unsigned',
  'valid',
  'replayed',
];

/** A replay follows so closely upon the one that it repeats that both are often on their way at once, or repeats an old one. */
const REPLAY_DISTANCES = [1, 3, 40] as const;

export class RequestPlan {
  readonly #site: Site;
  readonly #caller: Caller;
  readonly #valid: PlannedRequest[] = [];
  #made = 0;

  constructor(site: Site, caller: Caller) {
    this.#site = site;
    this.#caller = caller;
  }

  /** The rightly signed requests by number. */
  validBody(number: number): string | undefined {
    return this.#valid.some((valid) => valid.number === number) ? bodyOf(number) : undefined;
  }

  next(): PlannedRequest {
    this.#made += 1;
    const number = this.#made;
    const kind = MIX[number % MIX.length] ?? 'valid';
    const earlier = kind === 'replayed' ? this.#earlier(number) : undefined;
    if (earlier !== undefined) return { ...earlier, kind };
    const planned = this.#make(kind === 'replayed' ? 'valid' : kind, number);
    if (planned.kind === 'valid') this.#valid.push(planned);
    return planned;
  }

  #earlier(number: number): PlannedRequest | undefined {
    const distance = REPLAY_DISTANCES[number % REPLAY_DISTANCES.length] ?? 1;
    return this.#valid.at(-distance);
  }

  #make(kind: 'valid' | 'unsigned' | 'tampered', number: number): PlannedRequest {
    const request = signedRequest(this.#site, {
      caller: this.#caller,
      route: ROUTES.createOrder,
      target: `${ROUTES.createOrder.path_template}?n=${number}`,
      body: bodyOf(number),
    });
    if (kind === 'valid') return { kind, number, request };
    if (kind === 'unsigned') return { kind, number, request: { ...request, headers: [] } };
    return { kind, number, request: tampered(request, number) };
  }
}

const bodyOf = (number: number) => JSON.stringify({ item: number });

/** The request, tampered with in one of several ways, in turn. */
function tampered(request: WireRequest, number: number): WireRequest {
  const ways: readonly (() => WireRequest)[] = [
    () => ({ ...request, body: `${request.body} ` }),
    () => ({ ...request, target: `${request.target}&admin=1` }),
    () => withHeader(request, 'authorization', flipped(lineOf(request, 'authorization'))),
    () => withHeader(request, 'x-proofgate-signature', flipped(lineOf(request, 'x-proofgate-signature'))),
    () => withHeader(request, 'x-proofgate-transcript'),
  ];
  const way = ways[Math.floor(number / MIX.length) % ways.length];
  if (way === undefined) throw new Error('no way');
  return way();
}

function lineOf({ headers = [] }: WireRequest, name: string): string {
  const [, value] = headers.find(([key]) => key === name) ?? [];
  if (value === undefined) throw new Error(`the request has no ${name}`);
  return value;
}

/** Another character in the middle, where each of its bits counts. */
function flipped(value: string): string {
  const at = value.length - 20;
  return `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}`;
}
