/** "Copy as command": the `ctl` line that does the same. */
import { Button, Code, Collapse, CopyButton, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { ctlCommand } from '../api/ctl-command';

export function AsCommand({ words }: { readonly words: readonly string[] }) {
  const [shown, { toggle }] = useDisclosure(false);
  const line = ctlCommand(...words);
  return (
    <Stack gap={4} align="flex-start">
      <Button variant="subtle" size="compact-sm" color="gray" onClick={toggle} aria-expanded={shown}>
        As command
      </Button>
      <Collapse expanded={shown}>
        {line === undefined ? (
          <Text size="sm" c="dimmed">
            A name holds characters that are unsafe in a terminal. Use the ID.
          </Text>
        ) : (
          <CopyText text={line} />
        )}
      </Collapse>
    </Stack>
  );
}

/** A text to copy: a command, a snippet. */
export function CopyText({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap" className="copy-text">
      <Code block tabIndex={0} className="grow">
        {text}
      </Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="compact-sm" variant="default" onClick={copy}>
            {copied ? 'Copied' : label}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
