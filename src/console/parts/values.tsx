/** Components that show single values. */
import { ActionIcon, Badge, Code, CopyButton, Group, Text } from '@mantine/core';
import { Fragment, useEffect, useState } from 'react';
import { visible } from '../api/visible';
import { IconCheck, IconCopy } from './icons';

/** A complete ID, which a click copies. */
export function Id({ value }: { readonly value: string }) {
  return (
    <Group gap={4} wrap="nowrap" component="span">
      <Code className="id">{value}</Code>
      <CopyIcon value={value} label={`Copy ${value}`} />
    </Group>
  );
}

export function CopyIcon({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <ActionIcon
          variant="subtle"
          size="sm"
          color="gray"
          onClick={copy}
          aria-label={copied ? 'Copied' : label}
        >
          {copied ? <IconCheck /> : <IconCopy />}
        </ActionIcon>
      )}
    </CopyButton>
  );
}

/** Created when the first time is shown, because creating them takes a third of the load time of the console's code. */
let formats:
  | { readonly absolute: Intl.DateTimeFormat; readonly relative: Intl.RelativeTimeFormat }
  | undefined;

function makeFormats() {
  const absolute = new Intl.DateTimeFormat('en-GB', {
    year: 'numeric',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'short',
  });
  return { absolute, relative: new Intl.RelativeTimeFormat('en', { numeric: 'auto' }) };
}

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];

/** A time, relative to now and in the reader's time zone. In tables the exact one is read when the pointer rests on it. */
export function Moment({ at }: { readonly at: string | undefined }) {
  const nowMs = useNowMs();
  if (at === undefined)
    return (
      <Text c="dimmed" span>
        never
      </Text>
    );
  const ms = Date.parse(at);
  formats ??= makeFormats();
  const absolute = formats.absolute.format(ms);
  return (
    <Text span size="sm">
      <time dateTime={at} className="moment" title={absolute}>
        <span>{relativeTo(formats.relative, ms - nowMs)}</span> <span className="absolute">{absolute}</span>
      </time>
    </Text>
  );
}

/** `2026-11-21 14:24:05 UTC`. */
export function inUtc(at: string): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** How long something has lasted: "for 5 minutes". */
export function Lasting({ since }: { readonly since: string }) {
  const ms = Math.max(useNowMs() - Date.parse(since), 1_000);
  const [, size] = unitOf(ms);
  return (
    <time dateTime={since} title={inUtc(since)}>
      for {duration((Math.round(ms / size) * size) / 1_000)}
    </time>
  );
}

function unitOf(ms: number) {
  return UNITS.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? (['second', 1_000] as const);
}

function relativeTo(relative: Intl.RelativeTimeFormat, distance: number): string {
  const [unit, size] = unitOf(distance);
  return relative.format(Math.round(distance / size), unit);
}

/** In the largest unit that leaves nothing over: 5400 seconds are "90 minutes". */
export function duration(seconds: number): string {
  const [unit, ms] = UNITS.find(([, unitMs]) => (seconds * 1_000) % unitMs === 0) ?? ['second', 1_000];
  const count = (seconds * 1_000) / ms;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** Updates at an interval; once a second would redraw the page needlessly. */
function useNowMs(): number {
  const [, setTickMs] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => setTickMs(Date.now()), 10_000);
    return () => window.clearInterval(timer);
  }, []);
  return Date.now();
}

const COLORS: { readonly [state: string]: string } = {
  active: 'green',
  attached: 'green',
  current: 'green',
  issued: 'green',
  published: 'green',
  allowed: 'green',
  passed: 'green',
  effective: 'green',
  matches: 'green',
  would_pass: 'green',
  validated: 'blue',
  waiting: 'blue',
  activating: 'blue',
  publishing: 'blue',
  pending: 'yellow',
  pending_approval: 'yellow',
  suspended: 'yellow',
  behind: 'yellow',
  observed: 'yellow',
  would_fail: 'yellow',
  retiring: 'yellow',
  draft: 'gray',
  failed_draft: 'red',
  revoked: 'red',
  denied: 'red',
  failed: 'red',
  refusing: 'red',
  ahead: 'red',
};

/** Makes a state's name in the API readable: `pending_approval` becomes "pending approval". */
export function State({ value }: { readonly value: string }) {
  return (
    <Badge color={COLORS[value] ?? 'gray'} variant="light" className="state">
      {value.replaceAll('_', ' ')}
    </Badge>
  );
}

/** Text of a workload or an operator: never markup, with invisible characters made visible. */
export function UntrustedText({ value }: { readonly value: string }) {
  const shown = visible(value);
  return (
    <bdi className="foreign" title={shown}>
      {shown.split(WRAP_POINT).map((part, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other identity
        <Fragment key={place}>
          {place > 0 && <wbr />}
          {WHOLE.test(part) ? <span className="whole">{part}</span> : part}
        </Fragment>
      ))}
    </bdi>
  );
}

/** A word that fits on a line of a telephone; a browser would break it behind its hyphens. */
const WHOLE = /^(?=\S*-)\S{1,30}$/;

/** Behind these a long name may go on in the next line. */
const WRAP_POINT = /(?<=[/:.@=|])(?=[^/:.@=|])/;
