/** Schemas of clients, for which derived keys act, and their grants. Source: specification "Client"; docs/bundle.md "Content". */
import Type, { type Static } from 'typebox';
import { ACCESS_LEVELS } from '../protocol/access.ts';
import { MAX_ATTRIBUTES } from '../protocol/limits.ts';
import { closed, identifier, moment, object, VERSIONED } from './members-contract.ts';

const subject = identifier('sub of the passports of its keys. A SPIFFE ID lies in the site’s trust domain.');
const context = Type.Record(
  Type.String({ pattern: '^[!-~]{1,512}$' }),
  Type.String({ pattern: '^[!-~]{1,512}$' }),
  { ...closed, maxProperties: MAX_ATTRIBUTES, description: 'What its keys act for: routes may require it.' },
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
  description: 'Members that are not there stay as they are. The subject is fixed while keys are alive.',
});

export const CLIENT = object(
  {
    site_id: identifier('The Auth Site.'),
    client_id: identifier('Names the client.'),
    issuer: identifier('The site’s.'),
    trust_domain: identifier('The site’s.'),
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
    client_id: identifier('Who holds it.'),
    resource: identifier('What routes name as their resource.'),
    access,
    granted_at: moment('When it was given, or last changed.'),
  },
  'Grant',
);

export const CLIENT_PATH = { site_id: identifier('The Auth Site.'), client_id: identifier('The client.') };
export const GRANT_PATH = { ...CLIENT_PATH, resource: identifier('The resource.') };

export type NewClient = Static<typeof NEW_CLIENT>;
export type ClientChange = Static<typeof CLIENT_CHANGE>;
export type ClientView = Static<typeof CLIENT>;
export type GrantView = Static<typeof GRANT>;
