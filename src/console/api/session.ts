/** The signed-in operator, and the site of the page. */
import { QueryClient, queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { ApiError, api, bodyOf, type Schemas } from './client';
import { may, type Permission } from './permissions';

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // A refused request stays refused; a lost connection is tried again.
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

/** Forgets everything that was read. */
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
  // Until Control answers again.
  refetchInterval: ({ state }) => (state.error === null ? false : 5_000),
});

export function useSignedIn(): { session: Schemas['Session'] | null | undefined; error: unknown } {
  const { data, error } = useQuery(sessionQuery);
  return { session: data, error };
}

/** The session of a page, which is shown only to someone who is signed in. */
export function useSession(): Schemas['Session'] {
  const session = useSignedIn().session;
  if (!session) throw new Error('this page needs a session');
  return session;
}

/** The site that the address names. */
export function useSite(): Schemas['Site'] {
  const { siteId = '' } = useParams({ strict: false });
  return useSuspenseQuery({
    queryKey: ['site', siteId, 'site'],
    queryFn: () => bodyOf(api.GET('/v1/sites/{site_id}', { params: { path: { site_id: siteId } } })),
  }).data;
}

/** Whether the session may do this at the site of the page. */
export function useMay(permission: Permission): boolean {
  return may(useSession(), permission, useSite());
}
