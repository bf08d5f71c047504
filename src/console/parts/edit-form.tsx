/**
 * A form for what has members of many kinds, such as a route; `edit.tsx` is for flat ones. When somebody else changed it
 * meanwhile, both versions are shown, and what was entered is only saved over the new one when the operator says so.
 */
import { Alert, Button, Code, Group, Modal, SimpleGrid, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ApiError } from '../api/client';
import { visibleJson } from '../api/visible';
import { Problem } from './problem';
import { Foreign } from './values';

interface Loaded<D> {
  readonly draft: D;
  readonly etag: string;
}

export interface EditFormProps<D> {
  readonly label: string;
  readonly title: string;
  /** Reads the current version. */
  readonly load: () => Promise<Loaded<D>>;
  readonly fields: (draft: D, change: (changes: Partial<D>) => void) => ReactNode;
  readonly save: (draft: D, etag: string) => Promise<unknown>;
}

export function EditForm<D extends object>({ label, title, load, fields, save }: EditFormProps<D>) {
  const [opened, { open, close }] = useDisclosure(false);
  const [edited, setEdited] = useState<Loaded<D>>();
  /** The version that somebody else saved meanwhile. */
  const [newer, setNewer] = useState<Loaded<D>>();
  const client = useQueryClient();
  const loading = useMutation({
    mutationFn: load,
    onSuccess: (loaded) => {
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
      <Modal opened={opened} onClose={close} title={<Foreign value={title} />} size="lg">
        {edited !== undefined && (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              saving.mutate(newer === undefined ? edited : { draft: edited.draft, etag: newer.etag });
            }}
          >
            <Stack>
              {fields(edited.draft, (changes) =>
                setEdited({ ...edited, draft: { ...edited.draft, ...changes } }),
              )}
              {newer === undefined ? (
                saving.error && <Problem error={saving.error} />
              ) : (
                <Conflict mine={edited.draft} current={newer.draft} />
              )}
              <Group justify="flex-end">
                <Button variant="default" onClick={close}>
                  Cancel
                </Button>
                {newer !== undefined && (
                  <Button
                    variant="default"
                    onClick={() => {
                      setEdited(newer);
                      setNewer(undefined);
                      saving.reset();
                    }}
                  >
                    Start from the current version
                  </Button>
                )}
                <Button type="submit" loading={saving.isPending}>
                  {newer === undefined ? 'Save' : 'Replace the current version'}
                </Button>
              </Group>
            </Stack>
          </form>
        )}
      </Modal>
    </>
  );
}

function Conflict({ mine, current }: { readonly mine: object; readonly current: object }) {
  const versions = [
    ['Yours', mine],
    ['Current', current],
  ] as const;
  return (
    <Alert color="yellow" role="alert" title="Somebody changed it since you opened this form">
      <Stack gap="xs">
        <Text size="sm">Nothing was saved. Compare both versions, then decide.</Text>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          {versions.map(([name, version]) => (
            <div key={name}>
              <Text size="sm" fw={600}>
                {name}
              </Text>
              <Code block className="grow" tabIndex={0}>
                {visibleJson(version, 2)}
              </Code>
            </div>
          ))}
        </SimpleGrid>
      </Stack>
    </Alert>
  );
}
