/**
 * Edits a versioned resource: sends the operator's changes with the version that the form began with. If somebody else
 * changed it meanwhile, the form shows both versions, and the operator may apply the change to the new one.
 */
import { Alert, List } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { ApiError } from '../api/client';
import { Action, type Because } from './action';
import type { Command } from './command';
import { Conflict, textsOf } from './conflict';
import { bodyOfValues, type Field, Fields, type Values } from './fields';

interface Version<D> {
  readonly draft: D;
  readonly etag: string;
}

interface CommonProps<D extends object> {
  readonly label?: string;
  /** Describes the resource and the effect of a change. */
  readonly consequence: ReactNode;
  /** Reads the current version. */
  readonly load: () => Promise<Version<D>>;
  /** @param draft the resource after the change */
  readonly command: (changes: Partial<D>, draft: D) => Command;
  /** Whether the form asks for a reason. */
  readonly asksReason?: boolean;
  /** Describes the additional access that the change grants. */
  readonly admits?: (now: D, draft: D) => readonly Admitted[];
}

interface Admitted {
  readonly key: string;
  readonly shown: ReactNode;
}

interface EditFormProps<D extends object> extends CommonProps<D> {
  /** Labels of members whose names are not clear enough. */
  readonly labels?: readonly Pick<Field, 'name' | 'label'>[];
  readonly fields: (draft: D, change: (changes: Partial<D>) => void) => ReactNode;
  /** @param draft the resource after the change */
  readonly save: (draft: D, etag: string, changes: Partial<D>, because: Because) => Promise<unknown>;
}

interface Editing<D> {
  readonly before: Version<D>;
  readonly yours: D;
  /** The newer version that somebody else saved. */
  readonly newer?: Version<D>;
}

/** A form for members of many kinds, such as those of a route. */
export function EditForm<D extends object>({
  label = 'Edit',
  consequence,
  load,
  labels = [],
  fields,
  save,
  command,
  asksReason = false,
  admits = () => [],
}: EditFormProps<D>) {
  const [editing, setEditing] = useState<Editing<D>>();
  const { before, yours, newer } = editing ?? {};
  const changes = before && yours ? changesOf(before.draft, yours) : {};
  const base = newer ?? before;
  const wanted = base && { ...base.draft, ...changes };
  const admitted = base && wanted ? admits(base.draft, wanted) : [];
  return (
    <Action
      label={label}
      command={wanted === undefined ? [] : command(changes, wanted)}
      load={async () => {
        const loaded = await load();
        setEditing({ before: loaded, yours: loaded.draft });
      }}
      confirm={{
        submit: newer === undefined ? 'Save' : 'Apply mine to the new version',
        consequence,
        asksReason,
        fields: editing && (
          <>
            {fields(editing.yours, (changed) =>
              setEditing((now) => now && { ...now, yours: { ...now.yours, ...changed } }),
            )}
            <AdmitsMore admitted={admitted} />
          </>
        ),
        explain: (error) =>
          isOutdated(error) && before && yours && newer ? (
            <Conflict labels={labels} before={before.draft} current={newer.draft} yours={yours} />
          ) : undefined,
      }}
      run={async (because) => {
        if (editing === undefined || base === undefined || wanted === undefined) return;
        if (Object.keys(changes).length === 0) {
          if (newer === undefined) return;
          throw new Error('Nothing of yours is left to apply. Cancel, and edit the new version.');
        }
        try {
          await save(wanted, base.etag, changes, because);
        } catch (error) {
          if (isOutdated(error)) {
            const loaded = await load();
            setEditing((now) => now && { ...now, newer: loaded });
          }
          throw error;
        }
      }}
    />
  );
}

export function AdmitsMore({ admitted }: { readonly admitted: readonly Admitted[] }) {
  if (admitted.length === 0) return null;
  return (
    <Alert color="yellow" title="This admits more">
      <List size="sm">
        {admitted.map(({ key, shown }) => (
          <List.Item key={key}>{shown}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

interface EditProps extends CommonProps<Values> {
  readonly fields: readonly Field[];
  /** @param body the changed members */
  readonly save: (
    body: { readonly [name: string]: string | number },
    etag: string,
    because: Because,
  ) => Promise<unknown>;
}

/** A form for flat values. */
export function Edit({ fields, save, ...common }: EditProps) {
  return (
    <EditForm<Values>
      {...common}
      labels={fields}
      fields={(values, change) => <Fields fields={fields} values={values} onChange={change} />}
      save={(_, etag, changes, because) => save(bodyOfValues(fields, changes), etag, because)}
    />
  );
}

function changesOf<D extends object>(before: D, yours: D): Partial<D> {
  const [known, texts] = [textsOf(before), textsOf(yours)];
  const changed = Object.entries(yours).filter(([name]) => texts[name] !== known[name]);
  return Object.fromEntries(changed) as Partial<D>;
}

function isOutdated(error: unknown): boolean {
  // Control requires a version if the resource was created after the form began.
  return error instanceof ApiError && (error.status === 412 || error.code === 'precondition_required');
}
