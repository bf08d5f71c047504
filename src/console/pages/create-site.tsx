/** Creates an Auth Site, with its environment and fleet if they are new, by one declaration like `ctl apply`. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf } from '../api/client';
import { Action } from '../parts/action';
import { linesOf } from '../parts/lines';
import type NewSiteFields from './new-site-fields';
import type { NewSite } from './new-site-fields';

const START: NewSite = {
  siteId: '',
  trustDomain: '',
  origins: '',
  issuer: '',
  environment: 'production',
  fleet: 'main',
  isSingle: true,
};

export function CreateSite() {
  const navigate = useNavigate();
  const [Fields, setFields] = useState<typeof NewSiteFields>();
  const [entered, setEntered] = useState(START);
  const { siteId, trustDomain, origins, issuer, environment, fleet, isSingle } = entered;
  const site = {
    site_id: siteId,
    trust_domain: trustDomain,
    issuer_url: issuer === '' ? `https://${trustDomain}/sites/${siteId}` : issuer,
    origins: linesOf(origins),
    single_verifier: isSingle,
  };
  const body = { format: 'proofgate.site/v1' as const, environment, fleet, site };
  return (
    <Action
      label="Create site"
      isPrimary
      command={{ siteFile: body }}
      // Loaded on demand, so that the home page loads without the parts that only this dialogue needs.
      load={async () => {
        const module = await import('./new-site-fields');
        setFields(() => module.default);
      }}
      confirm={{
        consequence:
          'An Auth Site is an API with its gateway: the routes that it lets through, and who may call them.',
        fields: Fields && (
          <Fields
            entered={entered}
            issuerUrl={site.issuer_url}
            change={(changes) => setEntered({ ...entered, ...changes })}
          />
        ),
      }}
      run={() =>
        bodyOf(api.PUT('/v1/sites/{site_id}/declaration', { params: { path: { site_id: siteId } }, body }))
      }
      onDone={() => void navigate({ to: `/sites/${encodeURIComponent(siteId)}/setup` })}
    />
  );
}
