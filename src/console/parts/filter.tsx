/** Filters of Control, which apply when the user stops typing. */
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

export function FilterText({ placeholder, ...filter }: FilterTextProps) {
  return <Filter {...filter} {...(placeholder === undefined ? {} : { placeholder })} />;
}

/** A moment, entered in the reader's time zone and in the URL in UTC. */
export function FilterMoment({ name, label }: FilterTextProps) {
  return <Filter name={name} label={label} type="datetime-local" show={localTime} read={utcTime} />;
}

interface FilterProps extends FilterTextProps {
  readonly type?: string;
  /** The value of the input for that in the URL, and the reverse. */
  readonly show?: (applied: string) => string;
  readonly read?: (typed: string) => string;
}

const unchanged = (text: string) => text;

function Filter({ name, show = unchanged, read = unchanged, ...input }: FilterProps) {
  const { values, set } = useUrlState();
  const applied = values[name];
  const [typed, setTyped] = useState(() => show(applied ?? ''));
  // Clears the input when a link removes the filter.
  useEffect(() => {
    if (applied === undefined) setTyped('');
  }, [applied]);
  const apply = useDebouncedCallback(
    (text: string) => set({ [name]: read(text.trim()) || undefined }),
    PAUSE_MS,
  );
  return (
    <TextInput
      {...input}
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        apply(currentTarget.value);
      }}
    />
  );
}

/** `2026-11-21T04:00` of an RFC 3339 time; empty if it is none, or the local year has more than four digits. */
function localTime(moment: string): string {
  const ms = Date.parse(moment);
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  // East of UTC the last moment of a Date has no local one.
  const text = Number.isNaN(local.getTime()) ? '' : local.toISOString();
  return /^\d{4}-/.test(text) ? text.slice(0, 'YYYY-MM-DDTHH:mm'.length) : '';
}

function utcTime(local: string): string {
  const ms = Date.parse(local);
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().replace('.000', '');
}
