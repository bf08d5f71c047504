/** Creating an Auth Site, with its environment and fleet when they are new: one declaration, as `ctl apply` sends it. */
import { Autocomplete, Textarea, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, bodyOf } from '../api/client';
import { Action } from '../parts/action';
import { usePlaces } from '../parts/scope';
import { linesOf, SingleVerifier } from './site-forms';

export function CreateSite() {
  const navigate = useNavigate();
  const { data: places } = usePlaces();
  const [environment, setEnvironment] = useState('production');
  const [fleet, setFleet] = useState('main');
  const [siteId, setSiteId] = useState('');
  const [trustDomain, setTrustDomain] = useState('');
  const [issuer, setIssuer] = useState('');
  const [origins, setOrigins] = useState('');
  const [isSingle, setSingle] = useState(true);
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
      command={{ siteFile: body }}
      confirm={{
        consequence:
          'An Auth Site is an API with its gateway: the routes that it lets through, and who may call them.',
        fields: (
          <>
            <TextInput
              label="Site ID"
              description="Fixed once it exists."
              placeholder="shop-eu-1"
              value={siteId}
              onChange={({ currentTarget }) => setSiteId(currentTarget.value)}
              required
              data-autofocus
            />
            <TextInput
              label="Trust domain"
              description="Whose callers they are, such as your company's domain. Fixed."
              placeholder="shop.example"
              value={trustDomain}
              onChange={({ currentTarget }) => setTrustDomain(currentTarget.value)}
              required
            />
            <Textarea
              label="Origins"
              description="scheme://host that callers send requests to, one on each line."
              placeholder="https://api.shop.example"
              autosize
              value={origins}
              onChange={({ currentTarget }) => setOrigins(currentTarget.value)}
              required
            />
            <TextInput
              label="Issuer"
              description="Names this site in passports; nothing is fetched from it. Fixed."
              placeholder={
                siteId === '' || trustDomain === '' ? 'https://shop.example/sites/shop-eu-1' : site.issuer_url
              }
              value={issuer}
              onChange={({ currentTarget }) => setIssuer(currentTarget.value)}
            />
            <Autocomplete
              label="Environment"
              description="Created when it is new."
              data={[...new Set(places?.environments.map(({ name }) => name))]}
              value={environment}
              onChange={setEnvironment}
              required
            />
            <Autocomplete
              label="Fleet"
              description="Created when it is new."
              data={[...new Set(places?.fleets.map(({ name }) => name))]}
              value={fleet}
              onChange={setFleet}
              required
            />
            <SingleVerifier isSingle={isSingle} change={setSingle} />
          </>
        ),
      }}
      run={() =>
        bodyOf(api.PUT('/v1/sites/{site_id}/declaration', { params: { path: { site_id: siteId } }, body }))
      }
      onDone={() => void navigate({ to: `/sites/${encodeURIComponent(siteId)}/setup` })}
    />
  );
}
