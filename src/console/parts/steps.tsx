/** Steps in order, each done, next, blocked, or later. */
import { Badge, Card, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

export interface Step {
  readonly title: string;
  readonly isDone: boolean;
  /** Why the step cannot be done or does not complete. */
  readonly blockedBy?: ReactNode;
  /** Purpose of the step, or its result. */
  readonly text: ReactNode;
  /** Instructions, shown until the step is done. */
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

export function Steps({ steps }: { readonly steps: readonly Step[] }) {
  const next = steps.findIndex(({ isDone }) => !isDone);
  return (
    <Stack component="ol" gap="sm" className="steps">
      {steps.map((step, index) => (
        <li key={step.title}>
          <StepCard step={step} number={index + 1} isNext={index === next} />
        </li>
      ))}
    </Stack>
  );
}

interface StepCardProps {
  readonly step: Step;
  readonly number: number;
  readonly isNext: boolean;
}

function StepCard({ step: { title, isDone, blockedBy, text, todo, always }, number, isNext }: StepCardProps) {
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
