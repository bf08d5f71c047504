/**
 * Schemas of routes, their allowed sources, and brokers. The definitions come from the bundle's schema.
 * Source: specification "Route policy", "Route source set"; docs/design/bundle.md "Content".
 */

import type { Static } from 'typebox';
import Type from 'typebox';
import { BUNDLE_CONTENT } from '../../bundle/format/schema.ts';
import {
  closed,
  givenId,
  identifier,
  moment,
  object,
  text,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';
import { ACCESS_LEVELS } from '../../protocol/access.ts';
import { MAX_ATTRIBUTES } from '../../protocol/limits.ts';
import { OBSERVATION_END } from './hierarchy-contract.ts';

const { route_id: _routeId, ...routeMembers } = BUNDLE_CONTENT.properties.routes.items.properties;
const { issuer: _issuer, ...brokerMembers } = BUNDLE_CONTENT.properties.issuers.items.properties;
const sourcesList = BUNDLE_CONTENT.properties.route_sources.items.properties.allowed_sources;

export const ROUTE_DEFINITION = Type.Object(
  {
    ...routeMembers,
    enforcement: Type.Optional(
      Type.Enum(['enforce', 'observe'], {
        description:
          'observe: denied requests pass, without identity, until observe_until, where the verifier allows it. Default: enforce.',
      }),
    ),
    observe_until: OBSERVATION_END,
  },
  {
    ...closed,
    $id: 'RouteDefinition',
    description: 'As in a bundle’s routes, without route_id.',
  },
);
export const BROKER_DEFINITION = Type.Object(
  {
    ...brokerMembers,
    keys: {
      ...brokerMembers.keys,
      minItems: 0,
      description: 'Pinned keys. A broker without any is not published.',
    },
  },
  {
    ...closed,
    $id: 'BrokerDefinition',
    description: 'As in a bundle’s issuers, without issuer.',
  },
);

export const NEW_ROUTE = object(
  { route_id: identifier('Names the route. Fixed.'), definition: ROUTE_DEFINITION },
  'NewRoute',
  undefined,
  {
    route_id: 'orders-read',
    definition: {
      method: 'GET',
      path_template: '/v1/orders/{order_id}',
      audience: 'https://api.shop.example',
      freshness_class: 'bounded',
      max_staleness_seconds: 300,
      resource: 'orders',
    },
  },
);
export const ROUTE_REPLACEMENT = object({ definition: ROUTE_DEFINITION }, 'RouteReplacement');

export const ROUTE = object(
  {
    site_id: identifier('The Auth Site.'),
    route_id: identifier('Names the route.'),
    definition: ROUTE_DEFINITION,
    published: Type.Boolean({
      description: 'Whether bundles contain it. A route without sources is not published.',
    }),
    ...VERSIONED,
  },
  'Route',
);

export const ROUTE_SOURCES_REPLACEMENT = object(
  { allowed_sources: sourcesList },
  'RouteSourcesReplacement',
  undefined,
  {
    allowed_sources: [
      {
        issuer: 'https://control.shop.example/sites/shop-eu-1',
        trust_domain: 'shop.example',
        subject_exact: 'client:billing',
        required_key_binding: 'software',
      },
    ],
  },
);

export const ROUTE_SOURCES = object(
  {
    site_id: identifier('The Auth Site.'),
    route_id: identifier('The route.'),
    allowed_sources: sourcesList,
    ...VERSIONED,
  },
  'RouteSources',
);

const brokerUrl = text(
  2048,
  'Base URL of the broker, from which ctl fetches its keys. Control never fetches it.',
);

export const BROKER_REPLACEMENT = object(
  { definition: BROKER_DEFINITION, url: Type.Optional(brokerUrl) },
  'BrokerReplacement',
);

const PINNED_KEY = object(
  {
    kid: givenId('kid of the passports that it signs.'),
    alg: Type.Enum(['Ed25519', 'ES256']),
    thumbprint: givenId('RFC 7638, SHA-256, base64url.'),
    pinned_at: moment('When Control got the key. For keys from before 0.4.0: the last change of the broker.'),
  },
  'PinnedKey',
);

export const BROKER = object(
  {
    site_id: identifier('The Auth Site.'),
    issuer: identifier('iss of the passports that it signs.'),
    definition: BROKER_DEFINITION,
    ...VERSIONED,
    trust_domain: identifier('As in the definition.'),
    url: Type.Optional(brokerUrl),
    keys: Type.Array(PINNED_KEY, { description: 'The keys of the definition, with their ages.' }),
    published: Type.Boolean({
      description: 'Whether bundles contain it. A broker without keys is not published.',
    }),
  },
  'Broker',
);

export const ROUTE_PATH = { site_id: identifier('The Auth Site.'), route_id: identifier('The route.') };
export const ISSUER_PATH = {
  site_id: identifier('The Auth Site.'),
  issuer: identifier('iss of the broker, percent-encoded.'),
};
export const BROKER_PATH = { ...ISSUER_PATH, trust_domain: identifier('trust_domain of the broker.') };

export type RouteDefinition = Static<typeof ROUTE_DEFINITION>;
export type NewRoute = Static<typeof NEW_ROUTE>;
export type RouteView = Static<typeof ROUTE>;
export type RouteSourcesView = Static<typeof ROUTE_SOURCES>;
export type AllowedSources = Static<typeof ROUTE_SOURCES_REPLACEMENT>['allowed_sources'];
export type BrokerDefinition = Static<typeof BROKER_DEFINITION>;
export type BrokerReplacement = Static<typeof BROKER_REPLACEMENT>;
export type BrokerView = Static<typeof BROKER>;

/** Schemas of clients, for which derived keys act, and their grants. Source: specification "Client"; docs/design/bundle.md "Content". */
const subject = identifier('sub of the passports of its keys. A SPIFFE ID lies in the site’s trust domain.');
const context = Type.Record(
  Type.String({ pattern: '^[!-~]{1,512}$' }),
  Type.String({ pattern: '^[!-~]{1,512}$' }),
  { ...closed, maxProperties: MAX_ATTRIBUTES, description: 'Context of its keys, which routes may require.' },
);

export const NEW_CLIENT = object(
  { client_id: identifier('Names the client. Fixed.'), subject, context: Type.Optional(context) },
  'NewClient',
  undefined,
  { client_id: 'billing', subject: 'client:billing', context: { environment: 'production' } },
);

export const CLIENT_CHANGE = Type.Partial(Type.Object({ subject, context }), {
  ...closed,
  minProperties: 1,
  $id: 'ClientChange',
  description: 'Absent members keep their values. The subject cannot change while keys are valid.',
});

export const CLIENT = object(
  {
    site_id: identifier('The Auth Site.'),
    client_id: identifier('Names the client.'),
    issuer: identifier('As in the site.'),
    trust_domain: identifier('As in the site.'),
    subject,
    context,
    ...VERSIONED,
  },
  'Client',
);

const access = Type.Enum([...ACCESS_LEVELS], { description: 'write includes read.' });

export const GRANT_ACCESS = object({ access }, 'GrantAccess');

export const GRANT = object(
  {
    site_id: identifier('The Auth Site.'),
    client_id: identifier('The client that has the grant.'),
    resource: identifier('The resource, as routes name it.'),
    access,
    granted_at: moment('When it was created or last changed.'),
  },
  'Grant',
);

export const CLIENT_PATH = { site_id: identifier('The Auth Site.'), client_id: identifier('The client.') };
export const GRANT_PATH = { ...CLIENT_PATH, resource: identifier('The resource.') };

export type NewClient = Static<typeof NEW_CLIENT>;
export type ClientChange = Static<typeof CLIENT_CHANGE>;
export type ClientView = Static<typeof CLIENT>;
export type GrantView = Static<typeof GRANT>;
