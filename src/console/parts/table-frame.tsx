/**
 * A table that scrolls sideways in its own frame, also by keyboard, and says so; and its rows, which are cards on a
 * narrow screen.
 */
import { Button, Table, Text } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { visible } from '../api/visible';

interface TableFrameProps {
  /** What the table shows, for screen readers. */
  readonly label: string;
  readonly isLoading?: boolean;
  /** On a narrow screen each row is a card, and `data-title` of a cell its label. */
  readonly hasCards?: boolean;
  /** `Table.Thead` and `Table.Tbody`. */
  readonly children: ReactNode;
}

export function TableFrame({ label, isLoading = false, hasCards = false, children }: TableFrameProps) {
  const frame = useRef<HTMLElement>(null);
  const isCut = useIsCut(frame);
  return (
    <div>
      <section
        ref={frame}
        className={hasCards ? 'table-frame cards' : 'table-frame'}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard (WCAG 2.1.1)
        tabIndex={0}
        aria-busy={isLoading}
      >
        <Table highlightOnHover verticalSpacing="xs">
          {children}
        </Table>
      </section>
      {isCut && (
        <Text size="xs" c="dimmed" mt={4}>
          Scroll the table sideways to see more →
        </Text>
      )}
    </div>
  );
}

/** Whether the table is wider than its frame. */
function useIsCut(frame: { readonly current: HTMLElement | null }): boolean {
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    const { current } = frame;
    if (current === null) return undefined;
    const observer = new ResizeObserver(() => setCut(current.scrollWidth > current.clientWidth));
    observer.observe(current);
    if (current.firstElementChild !== null) observer.observe(current.firstElementChild);
    return () => observer.disconnect();
  }, [frame]);
  return isCut;
}

/** The headings of its columns. */
export function TableHead({ titles }: { readonly titles: readonly string[] }) {
  return (
    <Table.Thead>
      <Table.Tr>
        {titles.map((title) => (
          <Table.Th key={title} scope="col">
            {visible(title)}
          </Table.Th>
        ))}
      </Table.Tr>
    </Table.Thead>
  );
}

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => ReactNode;
  /** The value for sorting and searching; without it the column supports neither. */
  readonly text?: (item: T) => string;
  /** Whether a card shows it only after More. Default: from the fifth column on, if no column of the table says. */
  readonly isMinor?: boolean | ((item: T) => boolean);
}

const TELLING = 4;

interface ItemRowProps<T> {
  readonly item: T;
  readonly columns: readonly Column<T>[];
  /** Its first cell, for selecting it. */
  readonly selects?: ReactNode;
}

export function ItemRow<T>({ item, columns, selects }: ItemRowProps<T>) {
  const [isOpened, setOpened] = useState(false);
  const isSaid = columns.some(({ isMinor }) => isMinor !== undefined);
  const cells = columns.map(({ title, cell, isMinor = false }, place) => ({
    title,
    shown: cell(item),
    isMinor: isSaid ? (typeof isMinor === 'function' ? isMinor(item) : isMinor) : place >= TELLING,
  }));
  return (
    <Table.Tr data-opened={isOpened}>
      {selects}
      {cells.map(({ title, shown, isMinor }) => (
        <Table.Td key={title} data-title={visible(title)} data-minor={isMinor}>
          <div>{shown}</div>
        </Table.Td>
      ))}
      {cells.some(({ isMinor }) => isMinor) && (
        <Table.Td className="more">
          <Button
            variant="subtle"
            color="gray"
            size="compact-xs"
            aria-expanded={isOpened}
            onClick={() => setOpened(!isOpened)}
          >
            {isOpened ? 'Less' : 'More'}
          </Button>
        </Table.Td>
      )}
    </Table.Tr>
  );
}

interface ItemTableProps<T> {
  readonly label: string;
  readonly isLoading?: boolean;
  readonly items: readonly T[];
  readonly idOf: (item: T) => string;
  readonly columns: readonly Column<T>[];
}

/** A table of everything that there is, without pages, filters and order. */
export function ItemTable<T>({ label, isLoading = false, items, idOf, columns }: ItemTableProps<T>) {
  return (
    <TableFrame label={label} isLoading={isLoading} hasCards>
      <TableHead titles={columns.map(({ title }) => title)} />
      <Table.Tbody>
        {items.map((item) => (
          <ItemRow key={idOf(item)} item={item} columns={columns} />
        ))}
      </Table.Tbody>
    </TableFrame>
  );
}
