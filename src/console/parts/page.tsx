/** The frame of a page: its heading, its question, and its parts. */
import { Box, Card, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { visible } from '../api/visible';
import { Id, UntrustedText } from './values';

interface PageProps {
  /** Of a page about one thing: the thing's name. */
  readonly title: string;
  /** What kind of thing it is, such as `Key`. */
  readonly kind?: string;
  readonly id?: string;
  /** The question that the page answers. */
  readonly question?: string;
  /** Buttons for the whole page. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, kind, id, question, actions, children }: PageProps) {
  return (
    <Stack gap="lg">
      <title>{`${visible(title)} · Proofgate`}</title>
      <Group justify="space-between" align="flex-start">
        <Box>
          {kind !== undefined && (
            <Text size="sm" fw={600} c="dimmed">
              {kind}
            </Text>
          )}
          <Title order={1} size="h2">
            <UntrustedText value={title} />
          </Title>
          {id !== undefined && <Id value={id} />}
          {question !== undefined && <Text c="dimmed">{question}</Text>}
        </Box>
        {actions}
      </Group>
      {children}
    </Stack>
  );
}

export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Card withBorder component="section">
      <Stack gap="sm">
        <Title order={2} size="h4">
          {title}
        </Title>
        {children}
      </Stack>
    </Card>
  );
}

/** Names with values, such as all members of a key. */
export function Facts({ rows }: { readonly rows: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Shown instead of an empty list: why it is empty, and the next step. */
export function Empty({ children }: { readonly children: ReactNode }) {
  return (
    <Card withBorder p="xl">
      <Text component="div" size="sm" ta="center" c="dimmed">
        {children}
      </Text>
    </Card>
  );
}
