/** Routes of the console, created from the page table. */
import { Anchor, Text } from '@mantine/core';
import {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router';
import { parseSearch, stringifySearch } from '../api/url-state';
import { Page } from '../parts/page';
import { Problem } from '../parts/problem';
import { Unread } from '../parts/unread';
import { Frame } from './frame';
import { INSTALLATION_PAGES, type PageEntry, SITE_DETAIL_PAGES, SITE_PAGES } from './page-table';

const root = createRootRoute({
  component: Frame,
  notFoundComponent: NotFound,
  errorComponent: ({ error }) => <Problem error={error} />,
});

function routeOf(prefix: string, { path, title, load }: PageEntry) {
  return createRoute({
    getParentRoute: () => root,
    path: `${prefix}${path}`,
    component: lazyRouteComponent(load),
    pendingComponent: () => <Unread title={title} />,
    errorComponent: ({ error }) => <Problem error={error} />,
  });
}

/** Bookmarks of a page's former address. */
const formerExplain = createRoute({
  getParentRoute: () => root,
  path: '/sites/$siteId/try-request',
  beforeLoad: ({ params: { siteId }, search }) => {
    // The router's types know the search only of an address that is a literal.
    throw redirect({
      to: `/sites/${encodeURIComponent(siteId)}/explain`,
      search: search as never,
      replace: true,
    });
  },
});

export const router = createRouter({
  basepath: new URL(document.baseURI).pathname,
  parseSearch,
  stringifySearch,
  // A page that takes longer shows its title at once, and no longer than it must.
  defaultPendingMs: 100,
  defaultPendingMinMs: 0,
  routeTree: root.addChildren([
    ...INSTALLATION_PAGES.map((page) => routeOf('', page)),
    ...[...SITE_PAGES, ...SITE_DETAIL_PAGES].map((page) => routeOf('/sites/$siteId', page)),
    formerExplain,
  ]),
});

function NotFound() {
  return (
    <Page title="Not found">
      <Text>
        The console has no such page. Go to{' '}
        <Anchor component={Link} to="/" underline="always">
          Home
        </Anchor>
        .
      </Text>
    </Page>
  );
}
