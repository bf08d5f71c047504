/** The equivalent of a page or an action: `ctl` commands, or a site file for `ctl apply`. */
import { Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { controlUrl } from '../api/client';
import { ctlCommand, nameWord } from '../api/ctl-command';
import { visibleJson } from '../api/visible';
import { IconTerminal } from './icons';

/** Arguments of one or more `proofgate ctl` commands. */
type CommandWords = readonly string[] | readonly (readonly string[])[];

/** Members of the site file for `proofgate ctl apply`. */
export interface Declared {
  readonly siteFile: { readonly [member: string]: unknown };
  /** Commands to run first, for changes that the file cannot express, such as a new name. */
  readonly first?: readonly (readonly string[])[];
  readonly flags?: readonly string[];
}

/** The reason why there is no command. */
interface None {
  readonly none: string;
}

export type Command = CommandWords | Declared | None;

/** Commands that save what they print, and the one that uses the files. Names of files and `use` are fixed texts of the console. */
export interface Saved {
  readonly saved: readonly { readonly words: readonly string[]; readonly file: string }[];
  readonly use: string;
}

export function AsCommand({ words }: { readonly words: Command | Saved }) {
  const [shown, { toggle }] = useDisclosure(false);
  return (
    <Stack gap={4} align="flex-start">
      <Button
        variant="subtle"
        size="compact-sm"
        color="gray"
        onClick={toggle}
        aria-expanded={shown}
        leftSection={<IconTerminal />}
      >
        {'siteFile' in words ? 'As site file' : 'As command'}
      </Button>
      {shown && <CommandText words={words} />}
    </Stack>
  );
}

function textOf(words: Command | Saved): string | undefined {
  if ('siteFile' in words) return siteFileText(words);
  if ('saved' in words) return savedText(words);
  return 'none' in words ? undefined : commandText(words);
}

function CommandText({ words }: { readonly words: Command | Saved }) {
  const text = textOf(words);
  if (text !== undefined) return <CopyText text={text} />;
  return (
    <Text size="sm" c="dimmed">
      {'none' in words ? words.none : 'A name holds characters that are unsafe in a terminal. Use the ID.'}
    </Text>
  );
}

/**
 * Commands that rename a resource before the site file uses the new name, because otherwise `ctl apply` would create
 * another resource.
 */
export function renaming(kind: string, id: string, name: string | undefined): Pick<Declared, 'first'> {
  return name === undefined ? {} : { first: [['rename', kind, id, nameWord(name)]] };
}

/** The same command with the reason for the audit trail. */
export function withReason(command: Command, reason: string): Command {
  if (reason === '' || 'none' in command) return command;
  const flag = ['--reason', reason];
  if ('siteFile' in command) return { ...command, flags: [...(command.flags ?? []), ...flag] };
  return commandsOf(command).map((words) => [...words, ...flag]);
}

function commandText(words: CommandWords): string | undefined {
  const lines = commandsOf(words).map((each) => ctlCommand(controlUrl, each));
  return lines.includes(undefined) ? undefined : lines.join('\n');
}

function savedText({ saved, use }: Saved): string | undefined {
  const commands = saved.map(({ words }) => ctlCommand(controlUrl, words));
  if (commands.includes(undefined)) return undefined;
  return [...saved.map(({ file }, at) => `${commands[at]} > ${file}`), use].join('\n');
}

/** Strings are quoted as in JSON, because YAML 1.2 is a superset of JSON. */
function siteFileText({ siteFile, first = [], flags = [] }: Declared): string | undefined {
  const [apply, ...before] = [['apply', '-f', 'site.yaml', ...flags], ...first].map((words) =>
    ctlCommand(controlUrl, words),
  );
  if (apply === undefined || before.includes(undefined)) return undefined;
  const members = Object.entries(siteFile).flatMap(([member, value]) =>
    Array.isArray(value)
      ? [`${member}:`, ...value.map((item) => `  - ${visibleJson(item)}`)]
      : [`${member}: ${visibleJson(value)}`],
  );
  return [
    ...(before.length > 0 ? ['# run', ...before.map((line) => `# ${line}`)] : []),
    ...['# in the site file', ...members, '# then run', `# ${apply}`],
  ].join('\n');
}

function commandsOf(words: CommandWords): readonly (readonly string[])[] {
  const isOne = words.every((word) => typeof word === 'string');
  return isOne ? [words] : words.filter((word) => typeof word !== 'string');
}

/** A text to copy, such as a command. */
export function CopyText({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap" className="copy-text">
      <Code block tabIndex={0} className="grow">
        {text.split(/(\s+)/).map((word, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the words of one text have no other identity
          <span key={place} className={word.includes('-') ? 'word' : undefined}>
            {word}
          </span>
        ))}
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
