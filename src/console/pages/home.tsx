/** The home page: shows whether anything is wrong now. */
import { Anchor, Group, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, lazyRouteComponent } from '@tanstack/react-router';
import { type ReactNode, Suspense } from 'react';
import { api, bodyOf, type Schemas } from '../api/client';
import { overviewQuery } from '../api/site-overview';
import { AsCommand } from '../parts/command';
import { List } from '../parts/list';
import { Loading } from '../parts/loading';
import { Empty, Page } from '../parts/page';
import { useMayCreateSites } from '../parts/roles';
import { Steps } from '../parts/steps';
import { type Trouble, troublesOf } from '../parts/troubles';
import { Lasting, Moment, UntrustedText } from '../parts/values';
import { CreateSite } from './create-site';
import { firstSites, Verdict } from './home-verdict';

/** Loaded separately, because the first page does not need them. */
const Places = lazyRouteComponent(() => import('./places'));
const HomeDecisions = lazyRouteComponent(() => import('./home-decisions'));

type Overview = Schemas['SiteOverview'];

/** Maximum number of sites on a page, each of which causes a request. */
const SITES = 25;

export default function Home() {
  const mayCreate = useMayCreateSites();
  const { data } = useQuery(firstSites);
  // In an empty Control the first step has the button.
  const hasSites = data !== undefined && data.items.length > 0;
  return (
    <Page title="Home" question="Is anything wrong now?" actions={mayCreate && hasSites && <CreateSite />}>
      <Verdict />
      <List<Schemas['Site']>
        name="sites"
        queryKey={['sites']}
        fetch={(cursor) =>
          bodyOf(
            api.GET('/v1/sites', {
              params: { query: { limit: SITES, ...(cursor === undefined ? {} : { cursor }) } },
            }),
          )
        }
        idOf={({ site_id }) => site_id}
        columns={[
          {
            title: 'Site',
            text: ({ site_id, display_name }) => `${site_id} ${display_name}`,
            cell: ({ site_id, display_name }) => (
              <>
                <Anchor component={Link} to={pathOf(site_id, 'setup')} size="sm">
                  {site_id}
                </Anchor>
                {display_name !== site_id && (
                  <Text size="sm">
                    <UntrustedText value={display_name} />
                  </Text>
                )}
              </>
            ),
          },
          ...COLUMNS.map((column) => ({
            title: column.title,
            isMinor: column.isMinor ?? false,
            cell: ({ site_id }: Schemas['Site']) => <OverviewCell siteId={site_id} column={column} />,
          })),
        ]}
        empty={
          mayCreate ? (
            <FirstSteps />
          ) : (
            <Empty>
              You have no role at any site. Ask an administrator to grant you one, and tell them the Actor
              under Operators, This session.
            </Empty>
          )
        }
      />
      <AsCommand words={['get', 'sites']} />
      <Suspense fallback={<Loading height={240} />}>
        <HomeDecisions />
      </Suspense>
      {/* An operator who may rename a place may create sites in it. */}
      {mayCreate && (
        <Suspense fallback={<Loading height={160} />}>
          <Places />
        </Suspense>
      )}
    </Page>
  );
}

/** What a column says when nothing of it is wrong. */
const COLUMNS: readonly {
  readonly title: Trouble['about'] | 'Fresh';
  readonly show: (overview: Overview) => ReactNode;
  readonly isMinor?: boolean;
}[] = [
  {
    title: 'Targets',
    show: ({ targets: { attached, current } }) => (attached === 0 ? 'none yet' : `${current} current`),
  },
  { title: 'Sources', show: () => 'none waiting', isMinor: true },
  { title: 'Approvals', show: () => 'none' },
  { title: 'Keys', show: () => 'renewed in time' },
  { title: 'Published', show: ({ published_at }) => <Moment at={published_at} />, isMinor: true },
  { title: 'Fresh', show: ({ fresh_at }) => <Moment at={fresh_at} />, isMinor: true },
];

interface OverviewCellProps {
  readonly siteId: string;
  readonly column: (typeof COLUMNS)[number];
}

function OverviewCell({ siteId, column: { title, show } }: OverviewCellProps) {
  const { data, error } = useQuery(overviewQuery(siteId));
  if (data === undefined) return error ? 'not known' : <Skeleton height={16} />;
  const troubles = troublesOf(data).filter(({ about }) => about === title);
  if (troubles.length === 0) return show(data);
  return troubles.map(({ label, page, since, isLasting }) => (
    <Attention key={label} to={pathOf(siteId, page)} label={label} isNeeded={isLasting}>
      {since !== undefined && <Lasting since={since} />}
    </Attention>
  ));
}

interface AttentionProps {
  readonly to: string;
  readonly label: string;
  readonly isNeeded: boolean;
  readonly children?: ReactNode;
}

function Attention({ to, label, isNeeded, children }: AttentionProps) {
  return (
    <>
      <Anchor component={Link} to={to} size="sm" {...(isNeeded ? { c: 'yellow', fw: 600 } : {})}>
        <UntrustedText value={label} />
      </Anchor>
      {children !== undefined && (
        <Text component="div" size="sm">
          {children}
        </Text>
      )}
    </>
  );
}

function pathOf(siteId: string, page: string): string {
  return `/sites/${encodeURIComponent(siteId)}/${page}`;
}

/** First steps in a Control without sites. */
function FirstSteps() {
  const later = { isDone: false };
  return (
    <>
      <Text>Control is empty. These steps lead to the first allowed request; begin with the site.</Text>
      <Steps
        steps={[
          {
            ...later,
            title: 'Site',
            text: 'The API with its gateway: who may call it, and which verifiers guard it.',
            todo: (
              <Group>
                <CreateSite />
              </Group>
            ),
          },
          { ...later, title: 'Source', text: 'The cluster whose tokens prove who a workload is.' },
          { ...later, title: 'Client, route and grant', text: 'Who may call what.' },
          { ...later, title: 'Policy', text: 'Which workload may enroll keys of which client.' },
          { ...later, title: 'Target', text: 'Verifiers with one token, beside your gateway.' },
          { ...later, title: 'Key and first request', text: 'A workload enrolls, and calls your API.' },
        ]}
      />
    </>
  );
}
