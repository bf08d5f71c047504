/** Steps in order, each done and folded, or later, except one: the next one, or blocked. Its action alone is filled. */
import { Badge, Card, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { MayBePrimary } from './action';

export interface Step {
  readonly title: string;
  readonly isDone: boolean;
  /** Why the step cannot be done or does not complete. */
  readonly blockedBy?: ReactNode;
  /** Purpose of the step, or its result. */
  readonly text: ReactNode;
  /** Instructions, shown until the step is done. */
  readonly todo?: ReactNode;
  /** Shown in any state; when the step is done, after it is unfolded. */
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
  const state = isDone ? 'done' : !isNext ? 'later' : blockedBy === undefined ? 'next' : 'blocked';
  const { color, label } = LOOKS[state];
  const head = (
    <Group justify="space-between" wrap="nowrap" flex={1}>
      <Title order={2} size="h5">
        {number}. {title}
      </Title>
      <Badge color={color} variant="light" className="state">
        {label}
      </Badge>
    </Group>
  );
  return (
    <MayBePrimary value={isNext}>
      <Card withBorder padding={isDone ? 'xs' : 'md'}>
        <Stack gap="xs">
          {isDone ? (
            <details>
              <summary>{head}</summary>
              <Text component="div" size="sm" mt="xs">
                {text}
              </Text>
            </details>
          ) : (
            <>
              {head}
              <Text component="div" size="sm">
                {text}
              </Text>
              {isNext && blockedBy !== undefined && (
                <Text component="div" size="sm" c="red">
                  {blockedBy}
                </Text>
              )}
              {todo}
            </>
          )}
          {/* At the same place in each state, so that its open dialogue stays when the step is done. */}
          {always !== undefined && <div className="always">{always}</div>}
        </Stack>
      </Card>
    </MayBePrimary>
  );
}
