/**
 * What a target enforces although the bundle says observe, as the value of a request header: the count, then some of the names,
 * separated by spaces, such as `2 unmatched route=orders-read`. No name contains a space.
 * Source: docs/design/bundle.md "Distribution".
 */
import { IDENTIFIER_PATTERN } from './patterns.ts';

export interface EnforcedObservations {
  /** Number of observations, with those that are not named. At least 1. */
  readonly count: number;
  /** Whether requests that no route matches are among them. */
  readonly unmatched: boolean;
  /** Some of the routes: at most {@link MAX_NAMED}. */
  readonly routes: readonly string[];
}

export const MAX_NAMED = 10;
/** Proxies limit a header line to some KiB. */
const MAX_CHARACTERS = 2000;
const UNMATCHED = 'unmatched';
const ROUTE = 'route=';
const COUNT = /^[1-9][0-9]{0,5}$/;
const IDENTIFIER = new RegExp(IDENTIFIER_PATTERN);

/** Leaves out names for which there is no room. */
export function enforcedText({ count, routes, unmatched }: EnforcedObservations): string {
  let text = unmatched ? `${count} ${UNMATCHED}` : `${count}`;
  for (const routeId of routes.slice(0, MAX_NAMED)) {
    const longer = `${text} ${ROUTE}${routeId}`;
    if (longer.length <= MAX_CHARACTERS) text = longer;
  }
  return text;
}

/** Undefined for a text in another form, or a longer one. */
export function parseEnforced(text: string): EnforcedObservations | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const [count = '', ...names] = text.split(' ');
  const unmatched = names[0] === UNMATCHED;
  const routes = (unmatched ? names.slice(1) : names).map((name) =>
    name.startsWith(ROUTE) ? name.slice(ROUTE.length) : '',
  );
  const isInForm = COUNT.test(count) && routes.every((routeId) => IDENTIFIER.test(routeId));
  if (!isInForm || routes.length > MAX_NAMED) return undefined;
  return { count: Number(count), unmatched, routes };
}
