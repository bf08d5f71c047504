/** Links to things of the site by name; one that the site's first 200 do not have shows its ID. */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useSite } from '../api/session';
import { usePolicies, useSources } from '../api/site-lists';
import { UntrustedText } from './values';

interface NamedLinkProps {
  readonly id: string;
}

export function PolicyLink({ id }: NamedLinkProps) {
  const policy = usePolicies(useSite().site_id).find(({ policy_id }) => policy_id === id);
  return <PageLink page={`policies/${id}`} name={policy?.display_name ?? id} />;
}

export function SourceLink({ id }: NamedLinkProps) {
  const source = useSources(useSite().site_id)?.find(({ source_id }) => source_id === id);
  return <PageLink page={`sources/${id}`} name={source?.display_name ?? id} />;
}

/** @param page its path below the site's */
export function PageLink({ page, name }: { readonly page: string; readonly name: string }) {
  const { site_id } = useSite();
  return (
    <Anchor component={Link} to={`/sites/${encodeURIComponent(site_id)}/${page}`} size="sm">
      <UntrustedText value={name} />
    </Anchor>
  );
}
