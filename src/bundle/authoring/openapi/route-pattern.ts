/** Takes from a site file or bundle what OpenAPI does not say of a route: audience, freshness, and who may call. */
import { usageError } from '../../../process/program/errors.ts';
import { type JsonObject, jsonObjects } from '../../../protocol/strict-json.ts';
import { readBundleYaml } from '../yaml-source.ts';
import type { KnownRoute } from './propose-routes.ts';

/** Members of every new route; a verifier or Control validates them later. */
export interface RoutePattern {
  /** Where `allowed_sources` are: in each route, or in `route_sources` of a bundle. */
  readonly form: 'site' | 'bundle';
  readonly audience: string;
  readonly freshness: { readonly freshness_class: string; readonly max_staleness_seconds?: number };
  readonly allowedSources: readonly JsonObject[];
  readonly known: readonly KnownRoute[];
}

/** @throws BundleError `yaml_invalid`; CliError `pattern_missing` for a file without a complete route */
export function readRoutePattern(text: string, file: string): RoutePattern {
  const content = readBundleYaml(text, file);
  const routes = jsonObjects(content.routes);
  const form = content.route_sources === undefined ? 'site' : 'bundle';
  const [first] = routes;
  const owner =
    form === 'site'
      ? first
      : jsonObjects(content.route_sources).find(({ route_id: id }) => id === first?.route_id);
  const allowedSources = jsonObjects(owner?.allowed_sources);
  const { audience, freshness_class, max_staleness_seconds } = first ?? {};
  if (typeof audience !== 'string' || typeof freshness_class !== 'string' || allowedSources.length === 0) {
    const text = 'its first route must have audience, freshness_class and allowed_sources';
    throw usageError('pattern_missing', `${file}: ${text}: new routes take them from it`);
  }
  const freshness =
    typeof max_staleness_seconds === 'number'
      ? { freshness_class, max_staleness_seconds }
      : { freshness_class };
  return { form, audience, freshness, allowedSources, known: routes.flatMap(knownRoute) };
}

function knownRoute({
  route_id: routeId,
  method,
  path_template: pathTemplate,
}: JsonObject): readonly KnownRoute[] {
  const isKnown =
    typeof routeId === 'string' && typeof method === 'string' && typeof pathTemplate === 'string';
  return isKnown ? [{ routeId, method, pathTemplate }] : [];
}

/** For a site that is yet to be written. @param origin of the API; undefined when the document names none */
export function examplePattern(origin: string | undefined): RoutePattern {
  return {
    form: 'site',
    audience: origin ?? 'https://api.example',
    freshness: { freshness_class: 'bounded', max_staleness_seconds: 300 },
    allowedSources: [
      {
        issuer: 'https://control.example/sites/example',
        trust_domain: 'example',
        subject_prefix: 'client:',
        required_key_binding: 'software',
      },
    ],
    known: [],
  };
}
