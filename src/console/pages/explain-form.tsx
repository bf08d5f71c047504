/** What to explain: it is recognized as it is pasted, and fills the fields that it answers. */
import {
  Button,
  FileButton,
  Group,
  NumberInput,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { CopyText } from '../parts/command';
import { UntrustedText } from '../parts/values';
import {
  type AuditLine,
  isUrl,
  type Pasted,
  type RequestParts,
  recognize,
  requestOf,
  textOf,
} from './explain-input';

const MONOSPACE = { input: { fontFamily: 'var(--mantine-font-family-monospace)' } };
const NO_PARTS: RequestParts = { method: '', url: '', headers: '' };

interface ExplainFormProps {
  readonly onSubmit: (body: Schemas['ExplanationRequest']) => void;
  /** Some input changed, so that a result does not belong to it. */
  readonly onChange: () => void;
  readonly isPending: boolean;
}

export function ExplainForm({ onSubmit, onChange, isPending }: ExplainFormProps) {
  const [text, setText] = useState('');
  const [parts, setParts] = useState(NO_PARTS);
  const [revision, setRevision] = useState<number>();
  const [at, setAt] = useState('');
  const pasted = recognize(text);
  const { bundle_revision, time }: Partial<AuditLine> = pasted.kind === 'event' ? pasted.event : {};
  const entering =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      onChange();
      set(value);
    };
  const enterText = entering((next: string) => {
    const found = recognize(next);
    setText(next);
    setParts('parts' in found ? found.parts : NO_PARTS);
    setAt((found.kind === 'signed' ? found.at : undefined) ?? '');
    setRevision(undefined);
  });
  const hasRequest = parts.url !== '' || parts.headers !== '';
  const isIncomplete =
    text.trim() === '' ||
    pasted.kind === 'decision_id' ||
    ('parts' in pasted && hasRequest && !isUrl(parts.url));
  return (
    <form
      onSubmit={(submitted) => {
        submitted.preventDefault();
        onSubmit({
          request: requestOf(text, pasted, parts),
          ...(revision === undefined ? {} : { revision }),
          ...(at === '' ? {} : { at }),
        });
      }}
    >
      <Stack>
        <Textarea
          label="Audit line, decision ID, signed headers or captured request"
          description={
            <>
              A line of the verifier's audit log, what proofgate sign printed, a file of --capture-denied, or
              a CheckRequest as JSON. A decision ID is in the answer's header{' '}
              <span className="whole">X-Proofgate-Decision-Id</span>, in the gateway's access log and in audit
              events.
            </>
          }
          value={text}
          onChange={({ currentTarget }) => enterText(currentTarget.value)}
          rows={8}
          styles={MONOSPACE}
          spellCheck={false}
          autoComplete="off"
          required
        />
        <Recognized pasted={pasted} />
        {'parts' in pasted && (
          <PartFields parts={parts} change={entering(setParts)} hasRequest={hasRequest} />
        )}
        <Group align="flex-end">
          <FileButton
            accept="application/json,.json,.jsonl,.txt"
            onChange={(file) => void file?.text().then(enterText)}
          >
            {(props) => (
              <Button variant="default" {...props}>
                Choose file
              </Button>
            )}
          </FileButton>
          <NumberInput
            label="Bundle revision"
            placeholder={
              typeof bundle_revision === 'number'
                ? `${bundle_revision}, or newest`
                : 'of the event, or newest'
            }
            value={revision ?? ''}
            min={1}
            allowDecimal={false}
            onChange={(value) => entering(setRevision)(value === '' ? undefined : Number(value))}
          />
          <TextInput
            label="Time in UTC"
            placeholder={textOf(time) || 'of the capture, or now'}
            value={at}
            onChange={({ currentTarget }) => entering(setAt)(currentTarget.value.trim())}
          />
          <Button type="submit" loading={isPending} disabled={isIncomplete}>
            Explain
          </Button>
        </Group>
        <Text size="sm" c="dimmed">
          Control rejects a proof that could still be used: wait until it has expired, at most 6 minutes, or
          remove its signature. It stores and logs nothing of the request.
        </Text>
      </Stack>
    </form>
  );
}

/** What was pasted, and what it does not say. */
function Recognized({ pasted }: { readonly pasted: Pasted }) {
  if (pasted.kind === 'other') return null;
  if (pasted.kind === 'decision_id') {
    return (
      <Stack gap="xs" role="status">
        <Text size="sm">
          A decision ID alone says nothing about its request, and Control keeps no decisions: run this beside
          the verifier, or paste the audit line with this ID.
        </Text>
        <CopyText text={`proofgate explain --decision-id ${pasted.id} --audit-file audit.jsonl`} />
      </Stack>
    );
  }
  return (
    <Text size="sm" role="status">
      {pasted.kind === 'signed' ? (
        <>
          Signed request. It does not say what the gateway received, nor more of a body than its hash: change
          below what arrived otherwise.
        </>
      ) : (
        <>
          Audit line: <UntrustedText value={textOf(pasted.event.outcome)} />{' '}
          <UntrustedText value={textOf(pasted.event.reason)} />. It has neither URL nor headers: with them,
          each step is explained.
        </>
      )}
    </Text>
  );
}

interface PartFieldsProps {
  readonly parts: RequestParts;
  readonly change: (parts: RequestParts) => void;
  readonly hasRequest: boolean;
}

function PartFields({ parts, change, hasRequest }: PartFieldsProps) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="Method"
          value={parts.method}
          onChange={({ currentTarget }) => change({ ...parts, method: currentTarget.value })}
          autoComplete="off"
        />
        <TextInput
          label="URL that the gateway received"
          placeholder="https://api.shop.example/v1/orders?page=2"
          value={parts.url}
          error={hasRequest && !isUrl(parts.url) && 'must be a whole URL with a path, as it was sent'}
          onChange={({ currentTarget }) => change({ ...parts, url: currentTarget.value.trim() })}
          autoComplete="off"
        />
      </SimpleGrid>
      <Textarea
        label="Headers that the gateway received"
        description="One a line, Name: value."
        value={parts.headers}
        onChange={({ currentTarget }) => change({ ...parts, headers: currentTarget.value })}
        rows={4}
        styles={MONOSPACE}
        spellCheck={false}
        autoComplete="off"
      />
    </>
  );
}
