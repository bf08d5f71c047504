/** One derived key; all parts of a page share one request. */
import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf } from './client';

export const keyQuery = (siteId: string, keyId: string) =>
  queryOptions({
    queryKey: ['site', siteId, 'key', keyId],
    queryFn: () => bodyOf(api.GET('/v1/derived-keys/{key_id}', { params: { path: { key_id: keyId } } })),
  });

type Published = 'listed_in_revision' | 'revoked_in_revision';

/** The same, read again until a change of the key is published. */
export const publishedKeyQuery = (siteId: string, keyId: string, change: Published) =>
  queryOptions({
    ...keyQuery(siteId, keyId),
    refetchInterval: ({ state }) => (state.data?.[change] === undefined ? 2_000 : false),
  });
