/** A table that scrolls sideways in its own frame, also by keyboard. */
import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

interface TableFrameProps {
  /** What the table shows, for screen readers. */
  readonly label: string;
  readonly isLoading?: boolean;
  /** `Table.Thead` and `Table.Tbody`. */
  readonly children: ReactNode;
}

export function TableFrame({ label, isLoading = false, children }: TableFrameProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard (WCAG 2.1.1)
    <section className="table-frame" aria-label={label} tabIndex={0} aria-busy={isLoading}>
      <Table highlightOnHover verticalSpacing="xs">
        {children}
      </Table>
    </section>
  );
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
