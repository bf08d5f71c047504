/** A secret that Control shows once. Only the dialogue's button closes it, and the secret is then lost. */
import { Alert, Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { CopyText } from './command';
import { UntrustedText } from './values';

interface ShownOnceProps {
  readonly title: string;
  /** Undefined to show nothing. */
  readonly secret: string | undefined;
  readonly onClose: () => void;
  /** Instructions for the secret. */
  readonly children?: ReactNode;
}

export function ShownOnce({ title, secret, onClose, children }: ShownOnceProps) {
  return (
    <Modal
      opened={secret !== undefined}
      onClose={onClose}
      title={<UntrustedText value={title} />}
      size="xl"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Alert color="yellow" role="status">
          Control shows this token once. Save it now; a lost one must be rotated.
        </Alert>
        <Text size="sm" fw={600}>
          Token
        </Text>
        <CopyText text={secret ?? ''} label="Copy token" />
        {children}
        <Group justify="flex-end">
          <Button onClick={onClose}>I have saved it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
