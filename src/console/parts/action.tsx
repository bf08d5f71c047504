/**
 * A button that changes something. Most open a dialogue first, which shows what changes and for whom, and asks for a
 * reason for the audit trail. A final action names its thing, and is red there alone. Failures appear at the button. If one action
 * replaces another, such as Resume and Suspend, give each a `key`, so that an open dialogue stays with its action.
 */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react';
import { AsCommand, type Command, withReason } from './command';
import { FormError } from './fields';
import { Problem } from './problem';
import { UntrustedText } from './values';

/** False around actions that are not what the page is for now. */
export const MayBePrimary = createContext(true);

/** The reason for a change, as Control accepts it; empty if there is none. */
export interface Because {
  readonly reason?: string;
}

interface ActProps {
  readonly run: (because: Because) => Promise<unknown>;
  readonly onDone?: (() => void) | undefined;
}

interface ActionProps extends ActProps {
  readonly label: string;
  /** Called when the dialogue opens. */
  readonly onOpen?: () => void;
  /** Reads the data for the dialogue before it opens. */
  readonly load?: () => Promise<unknown>;
  readonly isDisabled?: boolean;
  /** The one action that the page is for. */
  readonly isPrimary?: boolean;
}

/** An action that opens a dialogue first. */
interface Asking {
  /** The equivalent command, without the reason. */
  readonly command: Command;
  readonly confirm: {
    /** What changes, and for whom. */
    readonly consequence: ReactNode;
    /** Whether the dialogue asks for a reason; a final action must have one. */
    readonly asksReason?: boolean;
    /** Name of the thing, for actions that cannot be undone. */
    readonly finalFor?: string;
    /** Further input fields. */
    readonly fields?: ReactNode;
    /** Label of the button that executes the action. Default: the label. */
    readonly submit?: string;
    /** Replaces the text of an error that needs an explanation. */
    readonly explain?: (error: unknown) => ReactNode;
  };
}

/** An action without a dialogue; the page shows the command. */
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
  isPrimary = false,
  confirm,
}: ActionProps & (Asking | AtOnce)) {
  const mayBePrimary = useContext(MayBePrimary);
  const button = useRef<HTMLButtonElement>(null);
  const [opened, { open, close }] = useDisclosure(false, { onOpen: () => setWasOpened(true) });
  const [wasOpened, setWasOpened] = useState(false);
  const atOnce = useAct({ run, onDone });
  const loading = useMutation({ mutationFn: async () => load?.(), onSuccess: open });
  useEffect(() => {
    if (wasOpened && !opened) button.current?.focus({ preventScroll: true });
  }, [wasOpened, opened]);
  const start = () => {
    onOpen?.();
    if (confirm === undefined) atOnce.mutate({});
    else if (load === undefined) open();
    else loading.mutate();
  };
  const failure = confirm === undefined ? atOnce.error : loading.error;
  return (
    <>
      <Button
        ref={button}
        size="compact-sm"
        variant={isPrimary && mayBePrimary ? 'filled' : 'default'}
        loading={atOnce.isPending || loading.isPending}
        disabled={isDisabled === true}
        onClick={start}
      >
        {label}
      </Button>
      {failure && <Problem error={failure} />}
      {confirm !== undefined && wasOpened && (
        <Dialogue
          title={label}
          opened={opened}
          onClose={close}
          returnsFocus={false}
          {...{ command, confirm, run, onDone }}
        />
      )}
    </>
  );
}

interface DialogueProps extends ActProps, Asking {
  readonly title: string;
  readonly onClose: () => void;
}

/** The dialogue before a change, for any trigger. */
export function Dialogue({
  opened,
  returnsFocus = true,
  ...question
}: DialogueProps & { readonly opened: boolean; readonly returnsFocus?: boolean }) {
  const { title, onClose } = question;
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={
        <>
          {title}
          {question.confirm.finalFor !== undefined && (
            <>
              {' '}
              <UntrustedText value={question.confirm.finalFor} />
            </>
          )}
        </>
      }
      size="lg"
      returnFocus={returnsFocus}
    >
      <Question {...question} />
    </Modal>
  );
}

/** The content of the dialogue, which is reset whenever it opens. */
function Question({ title, command, confirm, run, onDone, onClose }: DialogueProps) {
  const [reason, setReason] = useState('');
  const isFinal = confirm.finalFor !== undefined;
  const { mutate, isPending, error } = useAct({
    run,
    onDone: () => {
      onClose();
      onDone?.();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        mutate(reason === '' ? {} : { reason });
      }}
    >
      <Stack>
        <Text component="div" size="sm">
          {confirm.consequence}
        </Text>
        <FormError.Provider value={error}>{confirm.fields}</FormError.Provider>
        {confirm.asksReason === true && (
          <TextInput
            label="Reason, for the audit trail"
            value={reason}
            maxLength={128}
            autoComplete="off"
            required={isFinal}
            {...(isFinal ? { 'data-autofocus': true } : {})}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
          />
        )}
        {error && (confirm.explain?.(error) ?? <Problem error={error} />)}
        <AsCommand words={withReason(command, reason)} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" {...(isFinal ? { color: 'red' } : {})} loading={isPending}>
            {confirm.submit ?? title}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function useAct({ run, onDone }: ActProps) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: () => onDone?.(),
    // Also after a failure, because the page may show outdated data.
    onSettled: () => client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'session' }),
  });
}
