/** A chart of decisions over time, with its legend, and a table for those who cannot see it. Loaded only by pages with charts. */
import { Table, Text, useComputedColorScheme } from '@mantine/core';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { DecisionSeries } from '../api/decisions';
import type { Scheme, Stroke } from './series-color';
import { TableFrame, TableHead } from './table-frame';
import { UntrustedText } from './values';

type Series = DecisionSeries['series'][number];

interface DecisionChartProps {
  /** What it shows, such as "Decisions of shop-eu-1". */
  readonly title: string;
  readonly data: DecisionSeries;
  /** Series that are all zero are left out, except these. Always the same list, and the same function. */
  readonly always?: readonly string[];
  readonly strokeOf: (series: Series, place: number, scheme: Scheme) => Stroke;
  /** Name in the legend. Default: the series' name. */
  readonly nameOf?: (series: Series) => ReactNode;
}

const NONE: readonly string[] = [];
const HEIGHT = 180;
const MAX_TABLE_ROWS = 24;
const SECOND_MS = 1000;

export function DecisionChart({ title, data, always = NONE, strokeOf, nameOf }: DecisionChartProps) {
  const scheme = useComputedColorScheme('light');
  const [shown, setShown] = useState<number>();
  const series = useMemo(() => seriesOf(data, always), [data, always]);
  const strokes = useMemo(
    () => series.map((one, place) => strokeOf(one, place, scheme)),
    [series, strokeOf, scheme],
  );
  if (!data.reporting.some((targets) => targets > 0)) {
    return (
      <Text size="sm" c="dimmed">
        {title}: no target has reported in this period.
      </Text>
    );
  }
  return (
    <figure className="chart">
      <figcaption>
        <Text component="span" fw={600} size="sm">
          {title}
        </Text>
      </figcaption>
      <Canvas data={data} series={series} strokes={strokes} scheme={scheme} onPoint={setShown} />
      <Text size="sm" c="dimmed" aria-hidden mih="1.5em">
        {shown === undefined ? 'Sums of the period' : `${timeOf(data, shown)} UTC`}
      </Text>
      <ul className="legend" aria-label={`Legend: ${title}`}>
        {series.map((one, place) => (
          <li key={`${one.outcome} ${one.name} ${one.target_id}`}>
            <Sample stroke={strokes[place]} /> {nameOf?.(one) ?? <UntrustedText value={one.name} />}:{' '}
            {(shown === undefined ? one.total : one.counts[shown]) ?? 0}
          </li>
        ))}
        {series.length === 0 && <li>none</li>}
      </ul>
      {data.dropped > 0 && (
        <Text size="sm">{data.dropped} decisions could not be reported, and are missing here.</Text>
      )}
      {series.length > 0 && (
        <details>
          <summary>As a table</summary>
          <CountTable title={title} data={data} series={series} />
        </details>
      )}
    </figure>
  );
}

function seriesOf(data: DecisionSeries, always: readonly string[]): readonly Series[] {
  return data.series
    .filter(({ name, total }) => total > 0 || always.includes(name))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

function Sample({ stroke }: { readonly stroke: Stroke | undefined }) {
  return (
    <svg width="24" height="8" aria-hidden="true">
      <line
        x1="0"
        x2="24"
        y1="4"
        y2="4"
        stroke={stroke?.color}
        strokeWidth={stroke?.width}
        strokeDasharray={stroke?.dash.join(' ')}
      />
    </svg>
  );
}

interface CanvasProps {
  readonly data: DecisionSeries;
  readonly series: readonly Series[];
  readonly strokes: readonly Stroke[];
  readonly scheme: Scheme;
  /** The step under the pointer. */
  readonly onPoint: (step: number | undefined) => void;
}

function Canvas({ data, series, strokes, scheme, onPoint }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = box;
    if (current === null) return;
    const plot = new UPlot(
      optionsOf(current.clientWidth, data, { strokes, scheme, onPoint }),
      pointsOf(data, series),
      current,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: current.clientWidth, height: HEIGHT }));
    observer.observe(current);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [data, series, strokes, scheme, onPoint]);
  return <div ref={box} className="plot" aria-hidden="true" />;
}

function optionsOf(
  width: number,
  data: DecisionSeries,
  { strokes, scheme, onPoint }: Pick<CanvasProps, 'strokes' | 'scheme' | 'onPoint'>,
): UPlot.Options {
  const isDark = scheme === 'dark';
  const axis = {
    stroke: isDark ? '#c9c9c9' : '#495057',
    grid: { stroke: isDark ? '#3b3b3b' : '#e9ecef', width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
  return {
    width,
    height: HEIGHT,
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * SECOND_MS), 'Etc/UTC'),
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      {
        ...axis,
        size: 30,
        space: 70,
        values: (_, seconds) => seconds.map((second) => timeText(data, second * SECOND_MS)),
      },
      { ...axis, size: 56, incrs: WHOLE_NUMBERS },
    ],
    series: [
      {},
      ...strokes.map(({ color, dash, width }) => ({
        stroke: color,
        width,
        dash: [...dash],
        spanGaps: false,
      })),
    ],
    hooks: {
      setCursor: [({ cursor: { idx, left = -1 } }) => onPoint(left < 0 ? undefined : (idx ?? undefined))],
    },
  };
}

/** A count has no fractions. */
const WHOLE_NUMBERS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();

/** A step that no target reported is a gap. */
function pointsOf(data: DecisionSeries, series: readonly Series[]): UPlot.AlignedData {
  const first = Date.parse(data.from) / SECOND_MS;
  const seconds = data.reporting.map((_, step) => first + step * stepSeconds(data));
  const lines = series.map(({ counts }) =>
    data.reporting.map((targets, step) => (targets === 0 ? null : (counts[step] ?? 0))),
  );
  return [seconds, ...lines];
}

function stepSeconds({ step }: DecisionSeries): number {
  return step === 'minute' ? 60 : 3600;
}

function timeOf(data: DecisionSeries, step: number): string {
  return timeText(data, Date.parse(data.from) + step * stepSeconds(data) * SECOND_MS);
}

/** In UTC, as all times of the console. Minutes are of the last day at most. */
function timeText({ step }: DecisionSeries, ms: number): string {
  return new Date(ms).toLocaleString('en-GB', {
    ...(step === 'hour' && { weekday: 'short' }),
    hour: '2-digit',
    minute: '2-digit',
    timeZone: 'UTC',
  });
}

interface CountTableProps {
  readonly title: string;
  readonly data: DecisionSeries;
  readonly series: readonly Series[];
}

/** Some steps a row, the newest first. */
function CountTable({ title, data, series }: CountTableProps) {
  const perRow = Math.ceil(data.reporting.length / MAX_TABLE_ROWS);
  const starts = data.reporting.map((_, step) => step).filter((step) => step % perRow === 0);
  const unit = perRow === 1 ? data.step : `${perRow} ${data.step}s`;
  return (
    <TableFrame label={title}>
      <TableHead titles={[`From (UTC), ${unit} each`, ...series.map(({ name }) => name)]} />
      <Table.Tbody>
        {starts.toReversed().map((start) => (
          <Table.Tr key={start}>
            <Table.Th scope="row">{timeOf(data, start)}</Table.Th>
            {series.map(({ counts, name, target_id }) => (
              <Table.Td key={`${name} ${target_id}`}>
                {data.reporting.slice(start, start + perRow).every((targets) => targets === 0)
                  ? 'not reported'
                  : counts.slice(start, start + perRow).reduce((sum, count) => sum + count, 0)}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </TableFrame>
  );
}
