/** Steps in their order: done, to do next, blocked by something, or later. */
import { Badge, Card, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

export interface Rung {
  readonly title: string;
  readonly isDone: boolean;
  /** Why it cannot be done, or does not come about. */
  readonly blockedBy?: ReactNode;
  /** What it is for, or what is there. */
  readonly text: ReactNode;
  /** What to do, while it is not done. */
  readonly todo?: ReactNode;
  /** Shown in any state. */
  readonly always?: ReactNode;
}

const LOOKS = {
  done: { color: 'green', label: '✓ done' },
  blocked: { color: 'red', label: 'blocked' },
  next: { color: 'blue', label: 'next' },
  later: { color: 'gray', label: 'later' },
} as const;

export function Ladder({ rungs }: { readonly rungs: readonly Rung[] }) {
  const next = rungs.findIndex(({ isDone }) => !isDone);
  return (
    <Stack component="ol" gap="sm" className="ladder">
      {rungs.map((rung, index) => (
        <li key={rung.title}>
          <Step rung={rung} number={index + 1} isNext={index === next} />
        </li>
      ))}
    </Stack>
  );
}

interface StepProps {
  readonly rung: Rung;
  readonly number: number;
  readonly isNext: boolean;
}

function Step({ rung: { title, isDone, blockedBy, text, todo, always }, number, isNext }: StepProps) {
  const state = isDone ? 'done' : blockedBy !== undefined ? 'blocked' : isNext ? 'next' : 'later';
  const { color, label } = LOOKS[state];
  return (
    <Card withBorder padding={isDone ? 'xs' : 'md'}>
      <Stack gap="xs">
        <Group justify="space-between" wrap="nowrap">
          <Title order={2} size="h5">
            {number}. {title}
          </Title>
          <Badge color={color} variant="light" className="state">
            {label}
          </Badge>
        </Group>
        <Text component="div" size="sm">
          {text}
        </Text>
        {blockedBy !== undefined && !isDone && (
          <Text component="div" size="sm" c="red">
            {blockedBy}
          </Text>
        )}
        {!isDone && todo}
        {always}
      </Stack>
    </Card>
  );
}
