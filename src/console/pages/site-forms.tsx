/** Changing an Auth Site. */
import { Checkbox } from '@mantine/core';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import type { Declared } from '../parts/command';

type Site = Schemas['Site'];

export function readSite(site_id: string) {
  return versionedBodyOf(api.GET('/v1/sites/{site_id}', { params: { path: { site_id } } }));
}

export function changeSite(site_id: string, body: Schemas['SiteChange'], etag: string) {
  const params = { path: { site_id }, header: { 'if-match': etag } };
  return bodyOf(api.PATCH('/v1/sites/{site_id}', { params, body }));
}

/** The site as its site file declares it. */
export function declaredSite({
  environment_id: _environment,
  fleet_id: _fleet,
  version: _version,
  created_at: _created,
  updated_at: _updated,
  ...site
}: Site): Declared {
  return { siteFile: { site } };
}

export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

interface SingleVerifierProps {
  readonly isSingle: boolean;
  readonly change: (isSingle: boolean) => void;
}

export function SingleVerifier({ isSingle, change }: SingleVerifierProps) {
  return (
    <Checkbox
      label="One verifier process serves the site, so that it may keep used proofs in memory"
      checked={isSingle}
      onChange={({ currentTarget }) => change(currentTarget.checked)}
    />
  );
}
