/** Rules about Traefik's requests to the API: only the checked target, and only once. */
import type { Rule } from '../gateway/gateway.ts';
import type { View } from '../gateway/view.ts';
import {
  at,
  isCheck,
  keyOf,
  member,
  type Router,
  type Step,
  type TraefikConfiguration,
} from './configuration.ts';

const isChecked = ({ chains }: Router) => chains.some((chain) => chain.some(isCheck));

/** Routers with a chain that has the check but no earlier middleware that refuses such targets. */
function routersWithSpaces({ routers }: TraefikConfiguration): readonly View[] {
  const keepsSpaces = (chain: readonly Step[]) =>
    chain.some(isCheck) && !chain.slice(0, chain.findIndex(isCheck)).some(redirectsSpaces);
  return routers.filter(({ chains }) => chains.some(keepsSpaces)).map(({ view }) => view);
}

const ORDINARY = ['http://api.example/a?b=c', 'https://api.example/'];
const WITH_SPACES = ['http://api.example/a?b=c ', 'https://api.example/?   ', 'http://api.example/a?b c'];

/** Whether it matches exactly the targets with a space, as a whole. */
function redirectsSpaces({ kind, settings }: Step): boolean {
  if (kind !== 'redirectregex') return false;
  // In Go a dot matches a line feed only with a flag, and no target contains one.
  const source = (member(settings, 'regex')?.text ?? '').replace(/^\(\?s\)/, '');
  try {
    const pattern = new RegExp(source, 's');
    return (
      WITH_SPACES.every((target) => pattern.exec(target)?.[0] === target) &&
      !ORDINARY.some((target) => pattern.test(target))
    );
  } catch {
    return false;
  }
}

/** Deliveries of the services of checked routers, including services that combine several. */
function deliveries(traefik: TraefikConfiguration): readonly Delivery[] {
  return traefik.routers.filter(isChecked).flatMap(({ view }) => {
    const name = member(view, 'service');
    return name === undefined ? [] : deliveriesOf(traefik, name, new Set());
  });
}

interface Delivery {
  /** The place of a finding. */
  readonly view: View;
  readonly kind: 'once' | 'repeated' | 'mirrored';
}

/** @param name the name of a service, where it is used */
function deliveriesOf(
  traefik: TraefikConfiguration,
  name: View,
  around: ReadonlySet<string>,
): readonly Delivery[] {
  const key = keyOf(name.text ?? '');
  const service = traefik.services.get(key);
  // A service of another provider, or of Kubernetes, is unknown.
  if (service === undefined) return [{ view: name, kind: 'repeated' }];
  if (around.has(key)) return [];
  const within = new Set([...around, key]);
  return service.members().flatMap(({ name: kind, view }): readonly Delivery[] => {
    if (kind.toLowerCase() === 'loadbalancer') {
      return [{ view: service, kind: isOnce(traefik, view) ? 'once' : 'repeated' }];
    }
    if (kind.toLowerCase() === 'mirroring') return [{ view, kind: 'mirrored' }];
    const others = [
      ...(member(view, 'services')?.items() ?? []).flatMap((one) => member(one, 'name') ?? []),
      ...['service', 'fallback'].flatMap((one) => member(view, one) ?? []),
    ];
    const repeats = member(view, 'errors');
    return [
      ...(repeats === undefined ? [] : [{ view: repeats, kind: 'repeated' as const }]),
      ...others.flatMap((one) => deliveriesOf(traefik, one, within)),
    ];
  });
}

/** Whether neither connections are reused nor HTTP/2 is used, whose streams a server may refuse. */
function isOnce({ documents, transports }: TraefikConfiguration, loadBalancer: View): boolean {
  const name = member(loadBalancer, 'serversTransport')?.text;
  const transport =
    name === undefined
      ? documents.flatMap((view) => at(view, 'serversTransport') ?? []).at(-1)
      : transports.get(keyOf(name));
  if (transport === undefined || !closesConnections(transport)) return false;
  const urls = member(loadBalancer, 'servers')?.items() ?? [];
  const isPlain = urls.length > 0 && urls.every((one) => /^http:/i.test(member(one, 'url')?.text ?? ''));
  return isPlain || member(transport, 'disableHTTP2')?.flag === true;
}

function closesConnections(transport: View): boolean {
  return (member(transport, 'maxIdleConnsPerHost')?.number ?? 0) < 0;
}

export const DELIVERY_RULES: readonly Rule<TraefikConfiguration>[] = [
  {
    id: 'target-spaces',
    severity: 'error',
    effect: 'asks about a target without the spaces at its end, which the API gets',
    fix: 'the middleware proofgate-visible-target of deploy/traefik/proofgate.yaml, before the check',
    find: routersWithSpaces,
  },
  {
    id: 'upstream-retried',
    severity: 'error',
    effect: 'may send one checked request twice: after a connection that was used before has closed',
    fix: 'a serversTransport with maxIdleConnsPerHost: -1 and disableHTTP2: true; no failover.errors',
    find: (traefik) => [
      ...deliveries(traefik).flatMap(({ kind, view }) => (kind === 'repeated' ? [view] : [])),
      ...traefik.transportSpecs.filter(
        (spec) => !closesConnections(spec) || member(spec, 'disableHTTP2')?.flag !== true,
      ),
    ],
  },
  {
    id: 'mirrored',
    severity: 'error',
    effect: 'sends a checked request to a second server as well',
    fix: 'loadBalancer in place of mirroring',
    find: (traefik) => deliveries(traefik).flatMap(({ kind, view }) => (kind === 'mirrored' ? [view] : [])),
  },
];
