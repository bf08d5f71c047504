/**
 * A list of Control, with pages by cursor and its state in the URL. A list that fits on one page can be sorted by any
 * column and searched while typing. A longer list has Control's order and Control's filters.
 */
import {
  Button,
  Checkbox,
  Group,
  NativeSelect,
  Stack,
  Table,
  Text,
  TextInput,
  UnstyledButton,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useUrlState } from '../api/url-state';
import { Loading } from './loading';
import { Problem } from './problem';
import { type Column, ItemRow, TableFrame } from './table-frame';

export const PAGE_ITEMS = 100;

interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string;
}

export interface ListProps<T> {
  /** Plural name of the items, such as `keys`. */
  readonly name: string;
  readonly queryKey: readonly unknown[];
  readonly fetch: (cursor: string | undefined) => Promise<Page<T>>;
  readonly idOf: (item: T) => string;
  readonly columns: readonly Column<T>[];
  /** Shown instead of an empty list: the next step. */
  readonly empty: ReactNode;
  /** Control's filters, next to the search field. */
  readonly filters?: ReactNode;
  /** Whether a filter of Control is set: then an empty list means that nothing matches. */
  readonly isFiltered?: boolean;
  /** Makes items selectable. Selected items keep the version that was shown, even if they change meanwhile. */
  readonly selection?: Selection<T>;
}

interface Selection<T> {
  readonly items: readonly T[];
  readonly change: (items: readonly T[]) => void;
  /** Label of an item's checkbox. */
  readonly nameOf: (item: T) => string;
}

/**
 * With a filter, Control ends a page after 10,000 records. Maximum number of such pages to skip until there is an item
 * to show.
 */
const MAX_REQUESTS = 20;

async function filledPage<T>(fetch: ListProps<T>['fetch'], cursor: string | undefined): Promise<Page<T>> {
  let page = await fetch(cursor);
  for (let requests = 1; requests < MAX_REQUESTS; requests += 1) {
    if (page.next_cursor === undefined || page.items.length >= PAGE_ITEMS) break;
    const next = await fetch(page.next_cursor);
    page = { ...next, items: [...page.items, ...next.items] };
  }
  return page;
}

export function List<T>(props: ListProps<T>) {
  const { name, queryKey, fetch, idOf, columns, empty, filters, isFiltered, selection } = props;
  const { values, set } = useUrlState();
  const { cursor, search = '', sort, order } = values;
  /** On a narrow screen the filters are behind a button. */
  const [isUnfolded, setUnfolded] = useState(false);
  const { data, error, isFetching } = useQuery({
    queryKey: [...queryKey, { cursor }],
    queryFn: () => filledPage(fetch, cursor),
    placeholderData: (before) => before,
  });
  // Rendered at the same position before and after the first answer, so that typed text is kept.
  const head = (searchField?: ReactNode, order?: ReactNode) => (
    <Group gap="sm" align="flex-end" className="list-head">
      {searchField}
      {(filters !== undefined || Boolean(order)) && (
        <Button
          variant="default"
          className="fold"
          aria-expanded={isUnfolded}
          onClick={() => setUnfolded(!isUnfolded)}
        >
          {filters === undefined
            ? 'Order'
            : isFiltered === true
              ? 'Filters and order: filtered'
              : 'Filters and order'}
        </Button>
      )}
      <Group gap="sm" align="flex-end" className="folded" data-opened={isUnfolded}>
        {order}
        {filters}
      </Group>
    </Group>
  );
  // The filters stay visible, so that the user can correct one that Control rejects.
  if (data === undefined)
    return (
      <Stack gap="sm">
        {error && <Problem error={error} />}
        {head()}
        {!error && <Loading height={240} />}
      </Stack>
    );
  const isWhole = cursor === undefined && data.next_cursor === undefined;
  const items = isWhole ? sorted(matching(data.items, columns, search), columns, sort, order) : data.items;
  const isEmpty = data.items.length === 0 && cursor === undefined && isFiltered !== true;
  return (
    <Stack gap="sm">
      {error && <Problem error={error} />}
      {head(
        isWhole && !isEmpty && (
          <TextInput
            type="search"
            label="Search"
            value={search}
            onChange={({ currentTarget }) => set({ search: currentTarget.value })}
          />
        ),
        isWhole && !isEmpty && <OrderSelect columns={columns} sort={sort} order={order} set={set} />,
      )}
      {isEmpty ? (
        empty
      ) : (
        <>
          <TableFrame label={name} isLoading={isFetching} hasCards>
            <Table.Thead>
              <Table.Tr>
                {selection && (
                  <Table.Th w={40} className="selects">
                    <SelectAll items={items} selection={selection} />
                  </Table.Th>
                )}
                {columns.map((column) => (
                  <Heading
                    key={column.title}
                    column={column}
                    isSortable={isWhole}
                    sort={sort}
                    order={order}
                    set={set}
                  />
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {items.map((item) => (
                <ItemRow
                  key={idOf(item)}
                  item={item}
                  columns={columns}
                  selects={
                    selection && (
                      <Table.Td className="selects">
                        <SelectOne item={item} idOf={idOf} selection={selection} />
                      </Table.Td>
                    )
                  }
                />
              ))}
            </Table.Tbody>
          </TableFrame>
          <Group justify="space-between">
            <Text size="sm" c="dimmed" role="status">
              {items.length === 0
                ? `No ${name} match`
                : `${items.length} ${isWhole ? 'shown' : 'on this page'}`}
            </Text>
            <Group gap="xs">
              {cursor !== undefined && (
                <Button variant="default" size="compact-sm" onClick={() => set({ cursor: undefined })}>
                  First page
                </Button>
              )}
              {data.next_cursor !== undefined && (
                <Button variant="default" size="compact-sm" onClick={() => set({ cursor: data.next_cursor })}>
                  Next page
                </Button>
              )}
            </Group>
          </Group>
        </>
      )}
    </Stack>
  );
}

interface SelectAllProps<T> {
  readonly items: readonly T[];
  readonly selection: Selection<T>;
}

function SelectAll<T>({ items, selection: { items: selected, change } }: SelectAllProps<T>) {
  const isAll = items.length > 0 && selected.length === items.length;
  return (
    <Checkbox
      size="xs"
      aria-label="Select all"
      checked={isAll}
      indeterminate={!isAll && selected.length > 0}
      onChange={() => change(isAll ? [] : items)}
    />
  );
}

interface SelectOneProps<T> {
  readonly item: T;
  readonly idOf: (item: T) => string;
  readonly selection: Selection<T>;
}

function SelectOne<T>({ item, idOf, selection: { items, change, nameOf } }: SelectOneProps<T>) {
  const others = items.filter((each) => idOf(each) !== idOf(item));
  return (
    <Checkbox
      size="xs"
      aria-label={`Select ${nameOf(item)}`}
      checked={others.length < items.length}
      onChange={({ currentTarget }) => change(currentTarget.checked ? [...others, item] : others)}
    />
  );
}

interface Order {
  /** Title of the column. */
  readonly sort: string | undefined;
  /** `down` or ascending. */
  readonly order: string | undefined;
  readonly set: (changes: { readonly [name: string]: string | undefined }) => void;
}

interface HeadingProps<T> extends Order {
  readonly column: Column<T>;
  readonly isSortable: boolean;
}

function Heading<T>({ column: { title, text }, isSortable, sort, order, set }: HeadingProps<T>) {
  if (!isSortable || text === undefined) return <Table.Th scope="col">{title}</Table.Th>;
  const direction = sort !== title ? 'none' : order === 'down' ? 'descending' : 'ascending';
  const next = direction === 'ascending' ? { sort: title, order: 'down' } : { sort: title, order: undefined };
  return (
    <Table.Th scope="col" aria-sort={direction}>
      <UnstyledButton fz="sm" fw={700} onClick={() => set(next)}>
        {title}
        <span aria-hidden="true">{{ none: '', ascending: ' ↑', descending: ' ↓' }[direction]}</span>
      </UnstyledButton>
    </Table.Th>
  );
}

/** Sorts on a narrow screen, where cards have no headings to press. */
function OrderSelect<T>({ columns, sort, order, set }: Order & Pick<ListProps<T>, 'columns'>) {
  const titles = columns.filter(({ text }) => text !== undefined).map(({ title }) => title);
  return (
    <NativeSelect
      className="fold"
      label="Order"
      aria-label="Order"
      value={sort === undefined ? '' : `${order ?? ''} ${sort}`}
      data={[
        { value: '', label: 'as listed' },
        ...titles.flatMap((title) => [
          { value: ` ${title}`, label: `${title}, ascending` },
          { value: `down ${title}`, label: `${title}, descending` },
        ]),
      ]}
      onChange={({ currentTarget: { value } }) => {
        const at = value.indexOf(' ');
        set({ sort: value.slice(at + 1) || undefined, order: value.slice(0, Math.max(at, 0)) || undefined });
      }}
    />
  );
}

function matching<T>(items: readonly T[], columns: readonly Column<T>[], search: string): readonly T[] {
  const wanted = search.trim().toLowerCase();
  if (wanted === '') return items;
  return items.filter((item) => columns.some(({ text }) => text?.(item).toLowerCase().includes(wanted)));
}

function sorted<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  sort?: string,
  order?: string,
): readonly T[] {
  const text = columns.find(({ title }) => title === sort)?.text;
  if (text === undefined) return items;
  const sign = order === 'down' ? -1 : 1;
  const { compare } = new Intl.Collator('en', { numeric: true });
  return items.toSorted((a, b) => sign * compare(text(a), text(b)));
}
