/** Creating, changing and deleting routes. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { Action } from '../parts/action';
import { EditForm } from '../parts/edit';
import { UntrustedText } from '../parts/values';
import {
  type DefinitionDraft,
  DefinitionFields,
  definitionOf,
  draftOf,
  NEW,
  siteFileMembers,
} from './route-definition';
import {
  declaredRoute,
  ownRule,
  putRules,
  type RulesDraft,
  RulesFields,
  readRules,
  ruleOf,
  type SourceRule,
} from './route-rules';

export function CreateRoute({ label = 'Create route' }: { readonly label?: string }) {
  const site = useSite();
  const { site_id } = site;
  const [id, setId] = useState('');
  const [draft, setDraft] = useState(NEW);
  const [rules, setRules] = useState<RulesDraft>({ rules: [ownRule(site)] });
  const [isCreated, setCreated] = useState(false);
  const allowed_sources = rules.rules.map(ruleOf);
  return (
    <Action
      label={label}
      isPrimary
      command={declaredRoute({ route_id: id, ...siteFileMembers(draft), allowed_sources })}
      confirm={{
        asksReason: true,
        consequence:
          'A route lets requests through. A caller must match one of its caller rules; a client needs a grant for its resource, too.',
        fields: (
          <>
            <TextInput
              label="Route ID"
              description="Fixed once it exists."
              placeholder="orders-read"
              value={id}
              onChange={({ currentTarget }) => {
                setId(currentTarget.value);
                setCreated(false);
              }}
              required
              data-autofocus
            />
            <DefinitionFields draft={draft} change={(changes) => setDraft({ ...draft, ...changes })} />
            <RulesFields draft={rules} change={setRules} />
          </>
        ),
      }}
      run={async (query) => {
        const path = { site_id, route_id: id };
        if (!isCreated) {
          const body = { route_id: id, definition: definitionOf(draft) };
          const params = { path: { site_id }, query };
          await bodyOf(api.POST('/v1/sites/{site_id}/routes', { params, body }));
          // If the rules are rejected, only the rules are sent again.
          setCreated(true);
        }
        // The rules may already exist, because the answer may have been lost.
        const etag = isCreated ? (await readRules(path)).etag : undefined;
        if (allowed_sources.length > 0) await putRules(path, allowed_sources, etag, query);
      }}
      onDone={() => {
        setId('');
        setDraft(NEW);
        setRules({ rules: [ownRule(site)] });
        setCreated(false);
      }}
    />
  );
}

interface RouteDraft extends DefinitionDraft {
  /** Rules for the site file, which lists them with the route. */
  readonly allowed_sources: readonly SourceRule[];
}

export function EditRoute({ site_id, route_id }: Schemas['Route']) {
  const path = { site_id, route_id };
  return (
    <EditForm<RouteDraft>
      consequence={
        <>
          Route <UntrustedText value={route_id} />: requests are judged by the new definition as soon as each
          target has the next revision.
        </>
      }
      command={(_, { allowed_sources, ...draft }) =>
        declaredRoute({ route_id, ...siteFileMembers(draft), allowed_sources })
      }
      load={async () => {
        const [{ body, etag }, { rules }] = await Promise.all([
          versionedBodyOf(api.GET('/v1/sites/{site_id}/routes/{route_id}', { params: { path } })),
          readRules(path),
        ]);
        return { draft: { ...draftOf(body.definition), allowed_sources: rules }, etag };
      }}
      labels={[{ name: 'allowed_sources', label: 'caller rules' }]}
      fields={(draft, change) => <DefinitionFields draft={draft} change={change} />}
      asksReason
      save={({ allowed_sources: _, ...draft }, etag, __, query) =>
        bodyOf(
          api.PUT('/v1/sites/{site_id}/routes/{route_id}', {
            params: { path, query, header: { 'if-match': etag } },
            body: { definition: definitionOf(draft) },
          }),
        )
      }
    />
  );
}

export function DeleteRoute({ site_id, route_id, version, definition }: Schemas['Route']) {
  return (
    <Action
      label="Delete"
      command={['delete', 'route', nameWord(route_id), '--site', site_id, '--yes']}
      confirm={{
        finalFor: route_id,
        asksReason: true,
        consequence: `For good, with its caller rules. ${definition.method} ${definition.path_template} is denied as soon as each target has the next revision.`,
      }}
      run={(query) =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/routes/{route_id}', {
            params: { path: { site_id, route_id }, query, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
    />
  );
}
