/**
 * State machines as data: the next state for each state and event. Pure; every state change of a record goes through here.
 * Source: specification "States and transitions", docs/operate/control.md.
 */

/** Result of an event. */
export type Move<S extends string> =
  | { readonly kind: 'moved'; readonly to: S }
  | { readonly kind: 'refused'; readonly code: string };

export interface Machine<S extends string, E extends string> {
  readonly name: string;
  readonly states: readonly S[];
  readonly events: readonly E[];
  /** States that no event leaves. */
  readonly final: readonly S[];
  /** A state rejects every event that it does not list. */
  readonly table: { readonly [State in S]: { readonly [Event in E]?: S } };
  /** Error code of a rejected event. */
  readonly problem: string;
}

/** @returns the state after the event, or the machine's error code */
export function move<S extends string, E extends string>(
  machine: Machine<S, E>,
  state: S,
  event: E,
): Move<S> {
  const row = machine.table[state];
  // Own members only: inherited names such as `toString` are no events.
  const to = Object.hasOwn(row, event) ? row[event] : undefined;
  return to === undefined ? { kind: 'refused', code: machine.problem } : { kind: 'moved', to };
}
