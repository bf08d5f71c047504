/** A text filter of Control, which applies when the user stops typing. */
import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import { useUrlState } from '../api/url-state';

const PAUSE_MS = 300;

interface FilterTextProps {
  /** Name of the parameter in the URL. */
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
}

export function FilterText({ name, label, placeholder }: FilterTextProps) {
  const { values, set } = useUrlState();
  const applied = values[name];
  const [typed, setTyped] = useState(applied ?? '');
  // Clears the input when a link removes the filter.
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
