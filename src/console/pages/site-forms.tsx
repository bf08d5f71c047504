/** Changing and deleting an Auth Site. */
import { Checkbox, NumberInput, Textarea, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { Action } from '../parts/action';
import type { Declared } from '../parts/command';
import { EditForm } from '../parts/edit';
import { linesOf } from '../parts/lines';
import { ObserveFields } from '../parts/observe-fields';

type Site = Schemas['Site'];
/** Origins, one on each line. The capacity for sources is changed on the page that shows that it is used up. */
type SiteDraft = Pick<
  Site,
  'display_name' | 'single_verifier' | 'skew_seconds' | 'bundle_lifetime_seconds' | 'replay_stores'
> & { readonly origins: string; readonly unmatched: 'deny' | 'observe'; readonly unmatched_until: string };

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

export function EditSite() {
  const site = useSite();
  const { site_id } = site;
  return (
    <EditForm<SiteDraft>
      label="Edit site"
      consequence="Site ID, trust domain and issuer stay: living keys name them. A larger clock skew makes verifiers deny every request for a while."
      command={(_, { origins, unmatched, unmatched_until, ...draft }) =>
        declaredSite({
          ...site,
          ...draft,
          origins: linesOf(origins),
          ...unmatchedMembers({ unmatched, unmatched_until }),
        })
      }
      load={async () => {
        const { body, etag } = await readSite(site_id);
        const { display_name, single_verifier, skew_seconds, bundle_lifetime_seconds, origins } = body;
        const { replay_stores, unmatched, unmatched_until = '' } = body;
        const draft = {
          ...{ display_name, single_verifier, skew_seconds, bundle_lifetime_seconds, replay_stores },
          ...{ unmatched, unmatched_until },
        };
        return { draft: { ...draft, origins: origins.join('\n') }, etag };
      }}
      fields={(draft, change) => <SiteFields draft={draft} change={change} />}
      save={(draft, etag, { origins, unmatched, unmatched_until, ...changes }) =>
        changeSite(
          site_id,
          {
            ...changes,
            ...(origins === undefined ? {} : { origins: linesOf(origins) }),
            // Both change together.
            ...(unmatched === undefined && unmatched_until === undefined ? {} : unmatchedMembers(draft)),
          },
          etag,
        )
      }
    />
  );
}

function unmatchedMembers({ unmatched, unmatched_until }: Pick<SiteDraft, 'unmatched' | 'unmatched_until'>) {
  return unmatched === 'observe' ? { unmatched, unmatched_until } : { unmatched };
}

interface FieldsProps {
  readonly draft: SiteDraft;
  readonly change: (changes: Partial<SiteDraft>) => void;
}

function SiteFields({ draft, change }: FieldsProps) {
  return (
    <>
      <TextInput
        label="Name"
        value={draft.display_name}
        onChange={({ currentTarget }) => change({ display_name: currentTarget.value })}
        required
      />
      <Textarea
        label="Origins"
        description="scheme://host that callers send requests to, one on each line."
        autosize
        value={draft.origins}
        onChange={({ currentTarget }) => change({ origins: currentTarget.value })}
        required
      />
      <NumberInput
        label="Clock skew in seconds"
        description="How far the clocks of callers and verifiers may differ, 1 to 60."
        value={draft.skew_seconds}
        onChange={(next) => change({ skew_seconds: Number(next) })}
        required
      />
      <NumberInput
        label="Lifetime of a bundle in seconds"
        description="At least 300. A verifier that does not reach Control denies every request then."
        value={draft.bundle_lifetime_seconds}
        onChange={(next) => change({ bundle_lifetime_seconds: Number(next) })}
        required
      />
      <ObserveFields
        label="Requests that no route matches"
        description="Observed: they pass, without identity, unless they begin like an enforced route."
        otherwise="deny"
        isObserved={draft.unmatched === 'observe'}
        until={draft.unmatched_until}
        change={({ isObserved, until }) =>
          change({
            ...(isObserved === undefined ? {} : { unmatched: isObserved ? 'observe' : 'deny' }),
            ...(until === undefined ? {} : { unmatched_until: until }),
          })
        }
      />
      <SingleVerifier
        isSingle={draft.single_verifier}
        change={(single_verifier) => change({ single_verifier })}
      />
      <Checkbox
        label="Verifiers use several replay stores on purpose, such as one a region"
        description="A proof is accepted once in each, and the alert ProofgateReplayStores does not fire."
        checked={draft.replay_stores === 'per_region'}
        onChange={({ currentTarget }) =>
          change({ replay_stores: currentTarget.checked ? 'per_region' : 'one' })
        }
      />
    </>
  );
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

export function DeleteSite() {
  const { site_id, version } = useSite();
  const navigate = useNavigate();
  return (
    <Action
      label="Delete site"
      command={['delete', 'site', nameWord(site_id), '--yes']}
      confirm={{
        finalFor: site_id,
        consequence:
          'For good. Control refuses it while anything belongs to the site: clients, routes, sources, policies, targets, keys, role grants.',
      }}
      run={() =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}', {
            params: { path: { site_id }, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
      onDone={() => void navigate({ to: '/' })}
    />
  );
}
