/** Creating, changing and deleting clients. */
import { Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, bodyOf, type Schemas, versionedBodyOf } from '../api/client';
import { nameWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { Action } from '../parts/action';
import { EditForm } from '../parts/edit';
import { linesOf } from '../parts/lines';
import { UntrustedText } from '../parts/values';

/** A grant as in the site file, which removes grants that it does not name. */
export type DeclaredGrant = Pick<Schemas['Grant'], 'resource' | 'access'>;

/** Reads grants page by page. @returns the grants, and whether they are complete */
export async function readGrants<G>(
  pageAt: (query: { readonly limit: number; readonly cursor?: string }) => Promise<{
    readonly items: readonly G[];
    readonly next_cursor?: string;
  }>,
  maxPages = Number.POSITIVE_INFINITY,
): Promise<{ readonly items: readonly G[]; readonly isWhole: boolean }> {
  const items: G[] = [];
  let query: Parameters<typeof pageAt>[0] = { limit: 200 };
  for (let pages = 0; pages < maxPages; pages += 1) {
    const page = await pageAt(query);
    items.push(...page.items);
    if (page.next_cursor === undefined) return { items, isWhole: true };
    query = { ...query, cursor: page.next_cursor };
  }
  return { items, isWhole: false };
}

/** Limits how many grants are read for the site file, which lists them with the client. */
const MAX_GRANT_PAGES = 5;

interface ClientDraft {
  readonly subject: string;
  /** Lines of `name=value`. */
  readonly context: string;
}

export function CreateClient({ label = 'Create client' }: { readonly label?: string }) {
  const { site_id } = useSite();
  const [id, setId] = useState('');
  const [draft, setDraft] = useState<ClientDraft>({ subject: '', context: '' });
  const subject = draft.subject === '' ? `client:${id}` : draft.subject;
  const body = { client_id: id, subject, context: contextOf(draft.context) };
  return (
    <Action
      label={label}
      isPrimary
      command={{ siteFile: { clients: [{ ...body, grants: [] }] } }}
      confirm={{
        consequence: 'A client is who keys act for. Each of its keys inherits its grants.',
        fields: (
          <>
            <TextInput
              label="Client ID"
              description="Fixed once it exists."
              placeholder="billing"
              value={id}
              onChange={({ currentTarget }) => setId(currentTarget.value)}
              required
              data-autofocus
            />
            <ClientFields
              draft={draft}
              change={(changes) => setDraft({ ...draft, ...changes })}
              placeholder={`client:${id}`}
            />
          </>
        ),
      }}
      run={() => bodyOf(api.POST('/v1/sites/{site_id}/clients', { params: { path: { site_id } }, body }))}
      onDone={() => {
        setId('');
        setDraft({ subject: '', context: '' });
      }}
    />
  );
}

export function EditClient({ client: { site_id, client_id } }: { readonly client: Schemas['Client'] }) {
  const path = { site_id, client_id };
  /** Undefined when there are too many to read. */
  const [grants, setGrants] = useState<readonly DeclaredGrant[]>();
  return (
    <EditForm<ClientDraft>
      consequence={
        <>
          Client <UntrustedText value={client_id} />: its keys have the new context as soon as each target has
          the next revision.
        </>
      }
      command={(_, { subject, context }) =>
        grants === undefined
          ? { none: `The client has more than ${MAX_GRANT_PAGES * 200} grants. Edit it in the site file.` }
          : { siteFile: { clients: [{ client_id, subject, context: contextOf(context), grants }] } }
      }
      load={async () => {
        const { body, etag } = await versionedBodyOf(
          api.GET('/v1/sites/{site_id}/clients/{client_id}', { params: { path } }),
        );
        const { items, isWhole } = await readGrants(
          (query) =>
            bodyOf(api.GET('/v1/sites/{site_id}/clients/{client_id}/grants', { params: { path, query } })),
          MAX_GRANT_PAGES,
        );
        setGrants(isWhole ? items.map(({ resource, access }) => ({ resource, access })) : undefined);
        return { draft: { subject: body.subject, context: contextText(body.context) }, etag };
      }}
      fields={(draft, change) => <ClientFields draft={draft} change={change} />}
      asksReason
      save={({ subject, context }, etag, _, query) =>
        bodyOf(
          api.PATCH('/v1/sites/{site_id}/clients/{client_id}', {
            params: { path, query, header: { 'if-match': etag } },
            body: { subject, context: contextOf(context) },
          }),
        )
      }
    />
  );
}

interface FieldsProps {
  readonly draft: ClientDraft;
  readonly change: (changes: Partial<ClientDraft>) => void;
  readonly placeholder?: string;
}

function ClientFields({ draft: { subject, context }, change, placeholder }: FieldsProps) {
  return (
    <>
      <TextInput
        label="Subject"
        description="What APIs see as the caller. Fixed while the client has valid keys."
        {...(placeholder === undefined ? { required: true } : { placeholder })}
        value={subject}
        onChange={({ currentTarget }) => change({ subject: currentTarget.value })}
      />
      <Textarea
        label="Context"
        description="One name=value on each line; routes may require values."
        autosize
        minRows={2}
        value={context}
        onChange={({ currentTarget }) => change({ context: currentTarget.value })}
      />
    </>
  );
}

function contextOf(text: string): { readonly [name: string]: string } {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const [name = '', ...value] = line.split('=');
      return [name.trim(), value.join('=').trim()];
    }),
  );
}

function contextText(context: { readonly [name: string]: string }): string {
  return Object.entries(context)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');
}

export function DeleteClient({
  client: { site_id, client_id, version },
}: {
  readonly client: Schemas['Client'];
}) {
  return (
    <Action
      label="Delete"
      command={['delete', 'client', nameWord(client_id), '--site', site_id, '--yes']}
      confirm={{
        finalFor: client_id,
        asksReason: true,
        consequence:
          'For good, with its grants. Control refuses it while the client has policies or valid keys.',
      }}
      run={(query) =>
        bodyOf(
          api.DELETE('/v1/sites/{site_id}/clients/{client_id}', {
            params: { path: { site_id, client_id }, query, header: { 'if-match': `"${version}"` } },
          }),
        )
      }
    />
  );
}
