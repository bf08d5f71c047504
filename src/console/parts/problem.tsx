/** A failed request: Control's text, the stable code, and advice. */
import { Alert, Code, List, Text } from '@mantine/core';
import { ApiError } from '../api/client';
import { UntrustedText } from './values';

const ADVICE: { readonly [code: string]: string } = {
  permission_denied:
    'Your roles do not allow this here. Someone who administers the scope can grant you a role under Operators.',
  precondition_failed:
    'Someone changed it since this page showed it. The page now shows the new version: check it, and try again.',
  connection_failed: 'Check the network. The page tries again by itself.',
  rate_limited: 'Too many requests at once. Try again in a few seconds.',
};

export function Problem({ error }: { readonly error: unknown }) {
  const failure = error instanceof ApiError ? error : undefined;
  return (
    <Alert
      color="red"
      variant="light"
      title={error instanceof Error ? error.message : 'The page failed'}
      role="alert"
    >
      <Text size="sm" className="break">
        <UntrustedText value={failure?.detail ?? ''} />
      </Text>
      {failure !== undefined && failure.faults.length > 0 && (
        <List size="sm">
          {failure.faults.map(({ pointer, reason }) => (
            <List.Item key={`${pointer} ${reason}`} className="break">
              <UntrustedText value={pointer} />: <UntrustedText value={reason} />
            </List.Item>
          ))}
        </List>
      )}
      {failure !== undefined && <Text size="sm">{ADVICE[failure.code]}</Text>}
      {failure !== undefined && (
        <Text size="xs" c="dimmed" mt={4}>
          <Code>{failure.code}</Code> {failure.requestId !== undefined && <>request {failure.requestId}</>}
        </Text>
      )}
    </Alert>
  );
}
