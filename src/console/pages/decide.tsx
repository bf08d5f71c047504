/** Approves or denies one or more enrollments, each in the version that was shown. */
import { Alert, Code, Group, List, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { ApiError, api, bodyOf, type Schemas } from '../api/client';
import { Action, type Because } from '../parts/action';
import { Moment, State, UntrustedText } from '../parts/values';
import { Allowed } from './allowed';

type Enrollment = Schemas['Enrollment'];
type Verb = 'approve' | 'deny';

interface Failure {
  readonly enrollment: Enrollment;
  readonly error: unknown;
  /** The current enrollment, if somebody else changed it. */
  readonly current: Enrollment | undefined;
}

interface DecideProps {
  /** Enrollments in the version that was shown. */
  readonly enrollments: readonly Enrollment[];
  readonly onDone?: () => void;
}

export function Decide({ enrollments, onDone }: DecideProps) {
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const count = enrollments.length;
  const isMany = count > 1;
  const action = (verb: Verb, label: string, consequence: string) => (
    <Action
      label={isMany ? `${label} ${count}` : label}
      isDisabled={count === 0}
      isPrimary={verb === 'approve'}
      command={enrollments.map(({ enrollment_id }) => [verb, enrollment_id])}
      confirm={{
        consequence: (
          <Stack gap="xs">
            <Text size="sm">{consequence}</Text>
            <List size="sm" className="scrolled" tabIndex={0} aria-label="Enrollments">
              {enrollments.map((enrollment) => (
                <List.Item key={enrollment.enrollment_id}>
                  <Summary enrollment={enrollment} />
                </List.Item>
              ))}
            </List>
            {verb === 'approve' && <MayCall enrollments={enrollments} />}
          </Stack>
        ),
        asksReason: true,
      }}
      run={async (because) => {
        const failed: Failure[] = [];
        for (const enrollment of enrollments) {
          const failure = await decide(verb, enrollment, because);
          if (failure !== undefined) failed.push(failure);
        }
        setFailures(failed);
      }}
      onDone={onDone}
    />
  );
  return (
    <Stack gap="xs">
      <Group gap="xs">
        {action('approve', 'Approve', 'Control checks everything again, and issues a key to each of these:')}
        {action(
          'deny',
          'Deny',
          'These get no key. A workload may ask again; block its subject to prevent that.',
        )}
      </Group>
      {failures.length > 0 && <Failures failures={failures} onClose={() => setFailures([])} />}
    </Stack>
  );
}

function Summary({ enrollment }: { readonly enrollment: Enrollment }) {
  const { verified_subject, verified_issuer, provenance, fingerprint, client_id, key_expires_at } =
    enrollment;
  const pod = provenance.kubernetes_pod;
  return (
    <>
      <Text size="sm" fw={600}>
        <UntrustedText value={verified_subject} />
      </Text>
      <Text size="sm">
        by <UntrustedText value={verified_issuer} />
        {pod !== undefined && (
          <>
            , pod <UntrustedText value={pod} />
          </>
        )}
        , for client <UntrustedText value={client_id} />
      </Text>
      <Text size="sm">
        Key <Code className="id">{fingerprint}</Code> expires <Moment at={key_expires_at} />
      </Text>
    </>
  );
}

/** Each causes two requests. */
const MAX_CLIENTS = 5;

function MayCall({ enrollments }: Pick<DecideProps, 'enrollments'>) {
  const clients = [...new Set(enrollments.map(({ client_id }) => client_id))];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <section className="scrolled" tabIndex={0} aria-label="What the keys may call">
      {clients.slice(0, MAX_CLIENTS).map((client) => (
        <div key={client}>
          <Text size="sm" fw={600}>
            What keys of client <UntrustedText value={client} /> may call
          </Text>
          <Allowed clientId={client} />
        </div>
      ))}
      {clients.length > MAX_CLIENTS && (
        <Text size="sm">
          And {clients.length - MAX_CLIENTS} more clients: see the pages of their enrollments.
        </Text>
      )}
    </section>
  );
}

/** @returns undefined when the decision succeeded */
async function decide(verb: Verb, enrollment: Enrollment, because: Because): Promise<Failure | undefined> {
  const request = {
    params: {
      path: { enrollment_id: enrollment.enrollment_id },
      header: { 'if-match': `"${enrollment.version}"` },
    },
    body: because,
  };
  try {
    await bodyOf(
      verb === 'approve'
        ? api.POST('/v1/enrollments/{enrollment_id}/approve', request)
        : api.POST('/v1/enrollments/{enrollment_id}/deny', request),
    );
    return undefined;
  } catch (error) {
    return { enrollment, error, current: await currentOf(enrollment) };
  }
}

async function currentOf({ enrollment_id, version }: Enrollment): Promise<Enrollment | undefined> {
  const read = bodyOf(api.GET('/v1/enrollments/{enrollment_id}', { params: { path: { enrollment_id } } }));
  const current = await read.catch(() => undefined);
  // Only the operator's view has a version.
  return current !== undefined && 'version' in current && current.version !== version ? current : undefined;
}

function Failures({
  failures,
  onClose,
}: {
  readonly failures: readonly Failure[];
  readonly onClose: () => void;
}) {
  return (
    <Alert
      color="red"
      title={`Failed: ${failures.length}`}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
      role="alert"
    >
      <List size="sm">
        {failures.map(({ enrollment, error, current }) => (
          <List.Item key={enrollment.enrollment_id}>
            <UntrustedText value={enrollment.verified_subject} />:{' '}
            {current === undefined ? (
              <>
                {error instanceof Error ? error.message : String(error)}
                {error instanceof ApiError && error.detail !== undefined && (
                  <>
                    : <UntrustedText value={error.detail} />
                  </>
                )}{' '}
                {error instanceof ApiError && <Code>{error.code}</Code>}
              </>
            ) : (
              <>
                it changed since this page showed it. It is now <State value={current.state} />
                {current.decided_by !== undefined && (
                  <>
                    {' '}
                    by <UntrustedText value={current.decided_by} />
                  </>
                )}
              </>
            )}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

/** `kubernetes_service_account` is "service account". */
export function provenanceName(name: string): string {
  return name.replace(/^kubernetes_/, '').replaceAll('_', ' ');
}
