/**
 * Cursor pagination of lists. A cursor names the last item of a page, so that items added or removed meanwhile neither
 * repeat nor hide others. Cursors are opaque: base64url of that item's position in the list's order.
 */
import Type, { type Static, type TSchema } from 'typebox';
import { RequestShapeError } from '../../process/http-service/request-shape.ts';
import { decodeBase64url } from '../../protocol/base64url.ts';
import type { RangedPage } from '../store/repositories/ranged-list.ts';
import type { Page } from '../store/repositories/records.ts';

const DEFAULT_PAGE_ITEMS = 50;
export const MAX_PAGE_ITEMS = 200;

/** Query parameters of every list; add filters beside them. */
export const PAGE_MEMBERS = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_ITEMS,
      default: DEFAULT_PAGE_ITEMS,
      description: 'Maximum number of items in a page.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 2048, description: 'next_cursor of the previous page.' }),
  ),
};

const PAGE_QUERY = Type.Object(PAGE_MEMBERS, { additionalProperties: false });
export type PageQuery = Static<typeof PAGE_QUERY>;

/** Schema of a page. @param id the schema's name in the OpenAPI document */
export function pageOf<T extends TSchema>(item: T, id: string) {
  return Type.Object(
    {
      items: Type.Array(item, { maxItems: MAX_PAGE_ITEMS }),
      next_cursor: Type.Optional(
        Type.String({ description: 'Cursor of the next page; absent on the last page.' }),
      ),
    },
    { additionalProperties: false, $id: id },
  );
}

export interface PageView<V> {
  items: V[];
  next_cursor?: string;
}

/**
 * Returns one page of a list in the store's order.
 * @param fetch returns at most `limit` records after `after`, or fewer, and where it stopped
 * @param placeOf a record's position in that order
 * @throws RequestShapeError for an invalid cursor
 */
export async function page<R, V>(
  query: PageQuery,
  fetch: (page: Page) => Promise<RangedPage<R>>,
  placeOf: (record: R) => string,
  view: (record: R) => V | Promise<V>,
): Promise<PageView<V>> {
  const limit = query.limit ?? DEFAULT_PAGE_ITEMS;
  // One more than the page holds, to know whether another page follows.
  const records = await fetch({ after: query.cursor && readCursor(query.cursor), limit: limit + 1 });
  const { stoppedAt } = records;
  const shown = records.slice(0, limit);
  const items: V[] = [];
  for (const record of shown) items.push(await view(record));
  const last = shown.at(-1);
  if (records.length > limit && last !== undefined) return { items, next_cursor: cursorOf(placeOf(last)) };
  return stoppedAt === undefined ? { items } : { items, next_cursor: cursorOf(String(stoppedAt)) };
}

function cursorOf(place: string): string {
  return Buffer.from(place).toString('base64url');
}

/** List positions consist of visible ASCII identifiers, separated by a space. */
const PLACE = /^[ -~]+$/;

function readCursor(cursor: string): string {
  const place = decodeBase64url(cursor)?.toString('latin1');
  if (place === undefined || !PLACE.test(place)) throw invalidCursor();
  return place;
}

export function invalidCursor(): RequestShapeError {
  return new RequestShapeError([{ pointer: '/query/cursor', reason: 'not a valid next_cursor' }]);
}
