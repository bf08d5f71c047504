/** Traefik's install and routing configuration, in the form that the rules read. Traefik ignores the case of names. */
import { everyMapping, type View } from '../gateway/view.ts';

/** One middleware of a router, in the order in which requests pass them. Chains are expanded. */
export interface Step {
  /** Kind in lower case, such as `forwardauth`. */
  readonly kind: string;
  readonly settings: View;
}

export const isCheck = ({ kind }: Step): boolean => kind === 'forwardauth';

export interface Router {
  readonly view: View;
  /** One chain for each entry point that may use it. */
  readonly chains: readonly (readonly Step[])[];
}

export interface TraefikConfiguration {
  readonly documents: readonly View[];
  readonly entryPoints: readonly View[];
  /** Routers, without those to Traefik's own services. */
  readonly routers: readonly Router[];
  /** Settings of every ForwardAuth, also of manifests of `kind: Middleware`. */
  readonly checks: readonly View[];
  /** Services by their names in lower case. */
  readonly services: ReadonlyMap<string, View>;
  readonly transports: ReadonlyMap<string, View>;
  /** Specs of manifests of `kind: ServersTransport`. */
  readonly transportSpecs: readonly View[];
}

/** Undefined for documents that do not configure Traefik. */
export function readTraefik(documents: readonly View[]): TraefikConfiguration | undefined {
  const tcp = documents.flatMap((view) => at(view, 'tcp', 'routers') ?? []);
  const checks = everyMapping(documents).flatMap((view) => member(view, 'forwardAuth') ?? []);
  const entryPoints = documents.flatMap((view) => entriesOf(member(view, 'entryPoints')));
  const http = documents.flatMap((view) => member(view, 'http') ?? []);
  const named = (name: string) => http.flatMap((view) => entriesOf(member(view, name)));
  const byName = (kind: string) => new Map(named(kind).map(({ name, view }) => [keyOf(name), view]));
  const middlewares = byName('middlewares');
  const routers = named('routers').filter(({ view }) => !isInternal(view));
  const transportSpecs = documents
    .filter((view) => member(view, 'kind')?.text === 'ServersTransport')
    .flatMap((view) => member(view, 'spec') ?? []);
  if (checks.length + transportSpecs.length + entryPoints.length + routers.length + tcp.length === 0)
    return undefined;
  return {
    documents,
    checks,
    services: byName('services'),
    transports: byName('serversTransports'),
    transportSpecs,
    entryPoints: entryPoints.map(({ view }) => view),
    routers: routers.map(({ view }) => ({
      view,
      chains: entryPointsOf(view, entryPoints).map((entryPoint) =>
        [
          ...namesIn(entryPoint && at(entryPoint, 'http', 'middlewares')),
          ...namesIn(member(view, 'middlewares')),
        ].flatMap((name) => stepsOf(name, middlewares, [])),
      ),
    })),
  };
}

export function member(view: View, name: string): View | undefined {
  const wanted = name.toLowerCase();
  return view.members().findLast((one) => one.name.toLowerCase() === wanted)?.view;
}

export function at(view: View, ...names: readonly string[]): View | undefined {
  return names.reduce<View | undefined>((found, name) => found && member(found, name), view);
}

interface Entry {
  readonly name: string;
  readonly view: View;
}

function entriesOf(view: View | undefined): readonly Entry[] {
  return view?.members() ?? [];
}

function isInternal(router: View): boolean {
  return /@internal$/.test(member(router, 'service')?.text ?? '');
}

/** Undefined means entry points that are not in the documents. */
function entryPointsOf(router: View, entryPoints: readonly Entry[]): readonly (View | undefined)[] {
  const wanted = namesIn(member(router, 'entryPoints'));
  const found = entryPoints.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const isKnown = found.length > 0 && found.length >= wanted.length;
  return [...found.map(({ view }) => view), ...(isKnown ? [] : [undefined])];
}

function namesIn(list: View | undefined): readonly string[] {
  return list?.items().flatMap((item) => item.text ?? []) ?? [];
}

/** The key of a name, which may include the file provider. */
export function keyOf(name: string): string {
  return name.toLowerCase().replace(/@file$/, '');
}

/** Steps of a middleware by its name, such as `proofgate@file`; none for another provider's. */
function stepsOf(
  name: string,
  middlewares: ReadonlyMap<string, View>,
  around: readonly string[],
): readonly Step[] {
  const key = keyOf(name);
  const view = middlewares.get(key);
  if (view === undefined || around.includes(key)) return [];
  return view.members().flatMap(({ name: kind, view: settings }): readonly Step[] => {
    if (kind.toLowerCase() !== 'chain') return [{ kind: kind.toLowerCase(), settings }];
    return namesIn(member(settings, 'middlewares')).flatMap((one) =>
      stepsOf(one, middlewares, [...around, key]),
    );
  });
}
