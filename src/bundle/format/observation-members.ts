/** Members with which a bundle asks that routes, or requests that no route matches, are observed. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';

const OF_ROUTE = { mode: 'enforcement', until: 'observe_until' } as const;
const OF_SITE = { mode: 'unmatched', until: 'unmatched_until' } as const;

/** The content with only those observations that are kept; what is not observed has no member for it. */
export function keepObservations<C extends JsonObject>(content: C, isKept: (until: string) => boolean): C {
  const { routes } = content;
  return {
    ...kept(content, OF_SITE, isKept),
    ...(Array.isArray(routes) && {
      routes: routes.map((route: unknown) => (isJsonObject(route) ? kept(route, OF_ROUTE, isKept) : route)),
    }),
  };
}

function kept<E extends JsonObject>(
  entry: E,
  names: typeof OF_ROUTE | typeof OF_SITE,
  isKept: (until: string) => boolean,
): E {
  const { [names.mode]: mode, [names.until]: until, ...others }: JsonObject = entry;
  if (mode === undefined && until === undefined) return entry;
  return mode === 'observe' && typeof until === 'string' && isKept(until) ? entry : (others as unknown as E);
}

export function withoutObservations<C extends JsonObject>(content: C): C {
  return keepObservations(content, () => false);
}
