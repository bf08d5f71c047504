/**
 * A form for what has members of many kinds, such as a route; `edit.tsx` is for flat ones. When somebody else was faster, it
 * shows both versions, and the operator may apply the change to the new one.
 */
import { Button, Group, Modal, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ApiError } from '../api/client';
import { visibleJson } from '../api/visible';
import { Conflict } from './conflict';
import type { Values } from './fields';
import { Problem } from './problem';
import { UntrustedText } from './values';

interface Loaded<D> {
  readonly draft: D;
  readonly etag: string;
}

interface EditFormProps<D> {
  readonly label: string;
  readonly title: string;
  /** Reads the current version. */
  readonly load: () => Promise<Loaded<D>>;
  readonly fields: (draft: D, change: (changes: Partial<D>) => void) => ReactNode;
  readonly save: (draft: D, etag: string) => Promise<unknown>;
}

export function EditForm<D extends object>({ label, title, load, fields, save }: EditFormProps<D>) {
  const [opened, { open, close }] = useDisclosure(false);
  const [before, setBefore] = useState<D>();
  const [edited, setEdited] = useState<Loaded<D>>();
  /** The version that somebody else saved meanwhile. */
  const [newer, setNewer] = useState<Loaded<D>>();
  const client = useQueryClient();
  const loading = useMutation({
    mutationFn: load,
    onSuccess: (loaded) => {
      setBefore(loaded.draft);
      setEdited(loaded);
      setNewer(undefined);
      open();
    },
  });
  const saving = useMutation({
    mutationFn: async ({ draft, etag }: Loaded<D>) => {
      try {
        await save(draft, etag);
      } catch (error) {
        if (error instanceof ApiError && error.status === 412) setNewer(await load());
        throw error;
      }
    },
    onSuccess: close,
    onSettled: () => client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'session' }),
  });
  const start = () => {
    saving.reset();
    loading.mutate();
  };
  return (
    <>
      <Button size="compact-sm" variant="default" loading={loading.isPending} onClick={start}>
        {label}
      </Button>
      {loading.error && <Problem error={loading.error} />}
      <Modal opened={opened} onClose={close} title={<UntrustedText value={title} />} size="lg">
        {edited !== undefined && before !== undefined && (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              saving.mutate(
                newer === undefined
                  ? edited
                  : { draft: merged(before, edited.draft, newer.draft), etag: newer.etag },
              );
            }}
          >
            <Stack>
              {fields(edited.draft, (changes) =>
                setEdited({ ...edited, draft: { ...edited.draft, ...changes } }),
              )}
              {newer === undefined ? (
                saving.error && <Problem error={saving.error} />
              ) : (
                <Conflict
                  fields={Object.keys(edited.draft).map((name) => ({
                    name,
                    label: name.replaceAll('_', ' '),
                  }))}
                  before={textsOf(before)}
                  current={textsOf(newer.draft)}
                  yours={textsOf(edited.draft)}
                />
              )}
              <Group justify="flex-end">
                <Button variant="default" onClick={close}>
                  Cancel
                </Button>
                <Button type="submit" loading={saving.isPending}>
                  {newer === undefined ? 'Save' : 'Apply mine to the new version'}
                </Button>
              </Group>
            </Stack>
          </form>
        )}
      </Modal>
    </>
  );
}

/** What the operator changed, in the new version. */
function merged<D extends object>(before: D, yours: D, current: D): D {
  const known = textsOf(before);
  const changed = Object.entries(yours).filter(([name]) => textsOf(yours)[name] !== known[name]);
  return { ...current, ...Object.fromEntries(changed) };
}

function textsOf(draft: object): Values {
  const texts = Object.entries(draft).map(([name, value]) => {
    return [name, typeof value === 'string' ? value : visibleJson(value ?? '', 2)] as const;
  });
  return Object.fromEntries(texts);
}
