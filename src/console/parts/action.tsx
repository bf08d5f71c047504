/**
 * A button that changes something. A destructive one first says what will stop working, and asks for the name. Failures
 * are shown where the button is. Where one action takes the place of another, such as Resume of Suspend, give each a `key`: an
 * open dialogue must not become the other's.
 */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { visible } from '../api/visible';
import { AsCommand, type Command } from './command';
import { Problem } from './problem';
import { UntrustedText } from './values';

interface ActionProps {
  readonly label: string;
  /** When the dialogue opens. */
  readonly onOpen?: () => void;
  /** Reads what the dialogue shows, before it opens. */
  readonly load?: () => Promise<unknown>;
  readonly run: () => Promise<unknown>;
  readonly onDone?: () => void;
  readonly isDisabled?: boolean;
}

/** Asks first. */
interface Asking {
  /** What does the same without the console. */
  readonly command: Command;
  readonly confirm: {
    /** What happens, and what will stop working. */
    readonly consequence: ReactNode;
    /** What must be typed; for what cannot be undone. */
    readonly name?: string;
    /** More to enter. */
    readonly fields?: ReactNode;
    /** Of the button that does it. Default: the label. */
    readonly submit?: string;
    /** In place of a failure that needs more than its own words. */
    readonly explain?: (error: unknown) => ReactNode;
  };
}

/** Without a dialogue: the page shows the command. */
interface AtOnce {
  readonly command?: undefined;
  readonly confirm?: undefined;
}

export function Action({
  label,
  command,
  onOpen,
  load,
  run,
  onDone,
  isDisabled,
  confirm,
}: ActionProps & (Asking | AtOnce)) {
  const button = useRef<HTMLButtonElement>(null);
  const [opened, { open, close }] = useDisclosure(false, { onOpen: () => setWasOpened(true) });
  const [wasOpened, setWasOpened] = useState(false);
  const [typed, setTyped] = useState('');
  const client = useQueryClient();
  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: run,
    onSuccess: () => {
      close();
      onDone?.();
    },
    // After a failure too: what the page shows may be outdated.
    onSettled: () => client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'session' }),
  });
  const loading = useMutation({ mutationFn: async () => load?.(), onSuccess: open });
  useEffect(() => {
    if (wasOpened && !opened) button.current?.focus({ preventScroll: true });
  }, [wasOpened, opened]);
  const isDestructive = confirm?.name !== undefined;
  const start = () => {
    reset();
    setTyped('');
    onOpen?.();
    if (confirm === undefined) mutate();
    else if (load === undefined) open();
    else loading.mutate();
  };
  const failure = confirm === undefined ? error : loading.error;
  return (
    <>
      <Button
        ref={button}
        size="compact-sm"
        variant={isDestructive ? 'outline' : 'default'}
        {...(isDestructive ? { color: 'red' } : {})}
        loading={(isPending && confirm === undefined) || loading.isPending}
        disabled={isDisabled === true}
        onClick={start}
      >
        {label}
      </Button>
      {failure && <Problem error={failure} />}
      {confirm !== undefined && wasOpened && (
        <Modal opened={opened} onClose={close} title={label} size="lg" returnFocus={false}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              mutate();
            }}
          >
            <Stack>
              <Text component="div" size="sm">
                {confirm.consequence}
              </Text>
              {confirm.fields}
              {confirm.name !== undefined && (
                <TextInput
                  label={
                    <>
                      Type <UntrustedText value={confirm.name} /> to confirm
                    </>
                  }
                  value={typed}
                  onChange={({ currentTarget }) => setTyped(currentTarget.value)}
                  autoComplete="off"
                  data-autofocus
                />
              )}
              {error && (confirm.explain?.(error) ?? <Problem error={error} />)}
              <AsCommand words={command} />
              <Group justify="flex-end">
                <Button variant="default" onClick={close}>
                  Cancel
                </Button>
                <Button
                  type="submit"
                  {...(isDestructive ? { color: 'red' } : {})}
                  loading={isPending}
                  disabled={confirm.name !== undefined && !isSame(typed, confirm.name)}
                >
                  {confirm.submit ?? label}
                </Button>
              </Group>
            </Stack>
          </form>
        </Modal>
      )}
    </>
  );
}

/** As the page shows the name: what is not seen made visible, and as many spaces as one. */
function isSame(typed: string, name: string): boolean {
  const shown = (text: string) => visible(text).replace(/ +/g, ' ').trim();
  return shown(typed) === shown(name);
}
