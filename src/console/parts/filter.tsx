/** A filter of Control that is typed: it applies when one pauses. */
import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import { useUrlState } from '../api/url-state';

const PAUSE_MS = 300;

interface FilterTextProps {
  /** In the address. */
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
}

export function FilterText({ name, label, placeholder }: FilterTextProps) {
  const { values, set } = useUrlState();
  const applied = values[name];
  const [typed, setTyped] = useState(applied ?? '');
  // Removed by a link.
  useEffect(() => {
    if (applied === undefined) setTyped('');
  }, [applied]);
  const apply = useDebouncedCallback((text: string) => set({ [name]: text.trim() || undefined }), PAUSE_MS);
  return (
    <TextInput
      label={label}
      {...(placeholder === undefined ? {} : { placeholder })}
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        apply(currentTarget.value);
      }}
    />
  );
}
