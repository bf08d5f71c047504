/** The signed-in operator, and the site of the page. */
import { QueryClient, queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { ApiError, api, bodyOf, type Schemas } from './client';
import { may, type Permission } from './permissions';

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Retries after a lost connection, but not after a refused request.
      retry: (failures, error) => failures < 3 && error instanceof ApiError && error.status === 0,
      staleTime: 2_000,
    },
  },
});

queries.getQueryCache().subscribe(({ query, type }) => {
  if (type === 'updated') noteEndedSession(query.state.error);
});
queries.getMutationCache().subscribe(({ mutation }) => noteEndedSession(mutation?.state.error));

/** A 401 of any request shows the sign-in page, at the same address. */
function noteEndedSession(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) endSession();
}

/** Clears all cached data. */
export function endSession(): void {
  if (queries.getQueryData(SESSION_KEY) === null) return;
  queries.setQueryData(SESSION_KEY, null);
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
}

const SESSION_KEY = ['session'];

/** Its data is null without a session. */
export const sessionQuery = queryOptions({
  queryKey: SESSION_KEY,
  queryFn: () =>
    bodyOf(api.GET('/v1/session')).catch((failure: unknown) => {
      if (failure instanceof ApiError && failure.status === 401) return null;
      throw failure;
    }),
  // Polls until Control answers again.
  refetchInterval: ({ state }) => (state.error === null ? false : 5_000),
});

export function useSignedIn(): { session: Schemas['Session'] | null | undefined; error: unknown } {
  const { data, error } = useQuery(sessionQuery);
  return { session: data, error };
}

/** The session of a page that only signed-in operators see. */
export function useSession(): Schemas['Session'] {
  const session = useSignedIn().session;
  if (!session) throw new Error('this page needs a session');
  return session;
}

/** The site in the page's URL. */
export function useSite(): Schemas['Site'] {
  const { siteId = '' } = useParams({ strict: false });
  return useSuspenseQuery({
    queryKey: ['site', siteId, 'site'],
    queryFn: () => bodyOf(api.GET('/v1/sites/{site_id}', { params: { path: { site_id: siteId } } })),
  }).data;
}

/** Whether the session has this permission at the site of the page. */
export function useMay(permission: Permission): boolean {
  return may(useSession(), permission, useSite());
}
