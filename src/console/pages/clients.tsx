/** Clients with their grants, routes, brokers and OAuth issuers, and the pages about who may call what. */
import { Page } from '../parts/page';
import { type View, Views } from '../parts/views';
import { Brokers } from './brokers';
import { Callers } from './callers';
import { GrantMatrix } from './grant-matrix';
import { OAuthIssuers } from './oauth-issuers';
import { Routes } from './routes';

const VIEWS: readonly View[] = [
  { name: 'grants', title: 'Clients and grants', show: () => <GrantMatrix /> },
  { name: 'callers', title: 'Who may call?', show: () => <Callers /> },
  { name: 'routes', title: 'Routes', show: () => <Routes /> },
  { name: 'brokers', title: 'Brokers', show: () => <Brokers /> },
  { name: 'oauth-issuers', title: 'OAuth issuers', show: () => <OAuthIssuers /> },
];

export default function ClientsAndRoutes() {
  return (
    <Page title="Clients and routes" question="Which client may call which route?">
      <Views views={VIEWS} />
    </Page>
  );
}
