/**
 * State machines as data: what each state answers to each event. Pure; whoever moves a record asks here first.
 * Source: specification "States and transitions", docs/control.md.
 */

/** What comes of an event. */
export type Move<S extends string> =
  | { readonly kind: 'moved'; readonly to: S }
  | { readonly kind: 'refused'; readonly code: string };

export interface Machine<S extends string, E extends string> {
  readonly name: string;
  readonly states: readonly S[];
  readonly events: readonly E[];
  /** States that no event leaves. */
  readonly final: readonly S[];
  /** An event that a state does not name is refused. */
  readonly table: { readonly [State in S]: { readonly [Event in E]?: S } };
  /** Code of the refusal. */
  readonly refusal: string;
}

/** @returns the state after the event, or the machine's refusal */
export function move<S extends string, E extends string>(
  machine: Machine<S, E>,
  state: S,
  event: E,
): Move<S> {
  const row = machine.table[state];
  // Its own members only: a name that every object has is no event.
  const to = Object.hasOwn(row, event) ? row[event] : undefined;
  return to === undefined ? { kind: 'refused', code: machine.refusal } : { kind: 'moved', to };
}
