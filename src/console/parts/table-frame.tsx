/** A table that scrolls sideways in its own frame, also by keyboard, and says so. */
import { Table, Text } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';

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
            {title}
          </Table.Th>
        ))}
      </Table.Tr>
    </Table.Thead>
  );
}
