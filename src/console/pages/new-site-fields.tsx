/** Input fields for a new Auth Site. */
import { Autocomplete, Textarea, TextInput } from '@mantine/core';
import { usePlaces } from '../api/places';
import { SingleVerifier } from './site-forms';

export interface NewSite {
  readonly siteId: string;
  readonly trustDomain: string;
  /** Origins, one on each line. */
  readonly origins: string;
  /** If empty, it is derived from the trust domain and the site ID. */
  readonly issuer: string;
  readonly environment: string;
  readonly fleet: string;
  readonly isSingle: boolean;
}

interface NewSiteFieldsProps {
  readonly entered: NewSite;
  readonly issuerUrl: string;
  readonly change: (changes: Partial<NewSite>) => void;
}

export default function NewSiteFields({ entered, issuerUrl, change }: NewSiteFieldsProps) {
  const { data: places } = usePlaces();
  const { siteId, trustDomain, origins, issuer, environment, fleet, isSingle } = entered;
  return (
    <>
      <TextInput
        label="Site ID"
        description="Fixed once it exists."
        placeholder="shop-eu-1"
        value={siteId}
        onChange={({ currentTarget }) => change({ siteId: currentTarget.value })}
        required
        data-autofocus
      />
      <TextInput
        label="Trust domain"
        description="Whose callers they are, such as your company's domain. Fixed."
        placeholder="shop.example"
        value={trustDomain}
        onChange={({ currentTarget }) => change({ trustDomain: currentTarget.value })}
        required
      />
      <Textarea
        label="Origins"
        description="scheme://host that callers send requests to, one on each line."
        placeholder="https://api.shop.example"
        autosize
        value={origins}
        onChange={({ currentTarget }) => change({ origins: currentTarget.value })}
        required
      />
      <TextInput
        label="Issuer"
        description="Names this site in passports; nothing is fetched from it. Fixed."
        placeholder={siteId === '' || trustDomain === '' ? 'https://shop.example/sites/shop-eu-1' : issuerUrl}
        value={issuer}
        onChange={({ currentTarget }) => change({ issuer: currentTarget.value })}
      />
      <Autocomplete
        label="Environment"
        description="Created when it is new."
        data={[...new Set(places?.environments.map(({ name }) => name))]}
        value={environment}
        onChange={(name) => change({ environment: name })}
        required
      />
      <Autocomplete
        label="Fleet"
        description="Created when it is new."
        data={[...new Set(places?.fleets.map(({ name }) => name))]}
        value={fleet}
        onChange={(name) => change({ fleet: name })}
        required
      />
      <SingleVerifier isSingle={isSingle} change={(next) => change({ isSingle: next })} />
    </>
  );
}
