/** Whether denied requests are observed instead, and until when. */
import { NativeSelect, TextInput } from '@mantine/core';

interface ObserveFieldsProps {
  readonly label: string;
  /** What passes while it is observed. */
  readonly description: string;
  /** Name of the other choice, and what it does. */
  readonly otherwise: string;
  readonly isObserved: boolean;
  readonly until: string;
  readonly change: (changes: { readonly isObserved?: boolean; readonly until?: string }) => void;
}

export function ObserveFields({
  change,
  description,
  isObserved,
  label,
  otherwise,
  until,
}: ObserveFieldsProps) {
  return (
    <>
      <NativeSelect
        label={label}
        description={description}
        data={[
          { value: 'enforce', label: otherwise },
          { value: 'observe', label: 'observe: until an end, where the verifier allows it' },
        ]}
        value={isObserved ? 'observe' : 'enforce'}
        onChange={({ currentTarget: { value } }) => change({ isObserved: value === 'observe' })}
      />
      {isObserved && (
        <TextInput
          label="Observe until"
          description="UTC, at most 30 days ahead. Then they are denied."
          placeholder="2026-12-12T00:00:00Z"
          value={until}
          onChange={({ currentTarget }) => change({ until: currentTarget.value })}
          required
        />
      )}
    </>
  );
}
