/** Fields that forms and pages of sources share. */
import type { Schemas } from '../api/client';
import type { Field, Values } from '../parts/fields';

type Revision = Schemas['SourceRevision'];

const DRAFTS: readonly string[] = ['draft', 'failed_draft', 'validated'];
const SLOT_HOLDERS: readonly string[] = ['activating', 'publishing', 'active', 'suspended'];

export const isDraft = ({ state }: Revision) => DRAFTS.includes(state);
/** Whether this revision makes its source occupy one of the site's slots. */
export const holdsSlot = ({ state }: Revision) => SLOT_HOLDERS.includes(state);

export const REVISION_FIELDS: readonly Field[] = [
  {
    name: 'issuer',
    label: 'Issuer',
    description:
      "The cluster's issuer, exactly as in its tokens. It and the URL below: kubectl get --raw /.well-known/openid-configuration",
    placeholder: 'https://oidc.example/id/4F2A',
  },
  {
    name: 'jwks_uri',
    label: 'URL of its key set',
    placeholder: 'https://oidc.example/id/4F2A/keys',
  },
  {
    name: 'audience',
    label: 'Audience',
    description: 'The only audience of the workload tokens. No other site may use it.',
    placeholder: 'proofgate-shop-eu-1',
  },
  {
    name: 'discovery',
    label: 'Discovery document',
    options: [
      { value: 'checked', label: 'must name the issuer and the key set' },
      { value: 'skipped', label: 'is not fetched: the URLs above are trusted as entered' },
    ],
  },
];

const KEEP_OR_REVOKE = [
  { value: 'keep', label: 'keep valid keys until they expire' },
  { value: 'revoke', label: 'revoke valid keys' },
];

export const SOURCE_FIELDS: readonly Field[] = [
  { name: 'display_name', label: 'Name', placeholder: 'production cluster' },
  { name: 'on_suspend', label: 'When it is suspended', options: KEEP_OR_REVOKE },
  { name: 'on_retire', label: 'When it is retired', options: KEEP_OR_REVOKE },
];

export function valuesOfSource({ display_name, on_suspend, on_retire }: Schemas['Source']): Values {
  return { display_name, on_suspend, on_retire };
}

export function valuesOfRevision({ issuer, jwks_uri, audience, discovery }: Revision): Values {
  return { issuer, jwks_uri, audience, discovery };
}
