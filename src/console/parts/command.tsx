/** "Copy as command": the `ctl` lines that do the same. */
import { Button, Code, Collapse, CopyButton, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { controlUrl } from '../api/client';
import { ctlCommand } from '../api/ctl-command';

/** Arguments of `proofgate ctl`, of one command or of several. */
export type CommandWords = readonly string[] | readonly (readonly string[])[];

export function AsCommand({ words }: { readonly words: CommandWords }) {
  const [shown, { toggle }] = useDisclosure(false);
  const lines = commandsOf(words).map((each) => ctlCommand(controlUrl, each));
  return (
    <Stack gap={4} align="flex-start">
      <Button variant="subtle" size="compact-sm" color="gray" onClick={toggle} aria-expanded={shown}>
        As command
      </Button>
      <Collapse expanded={shown}>
        {lines.includes(undefined) ? (
          <Text size="sm" c="dimmed">
            A name holds characters that are unsafe in a terminal. Use the ID.
          </Text>
        ) : (
          <CopyText text={lines.join('\n')} />
        )}
      </Collapse>
    </Stack>
  );
}

function commandsOf(words: CommandWords): readonly (readonly string[])[] {
  const isOne = words.every((word) => typeof word === 'string');
  return isOne ? [words] : words.filter((word) => typeof word !== 'string');
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
