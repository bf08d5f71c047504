/** Every page of the console, in the order of the navigation. Each except Home is loaded when it is first opened. */
import type { ComponentType } from 'react';
import type { Permission } from '../api/permissions';
import * as home from '../pages/home';
import * as icons from '../parts/icons';

export interface PageEntry {
  /** Path below the installation or `/sites/<site>`, with parameters in the syntax of TanStack Router. */
  readonly path: string;
  readonly title: string;
  /** In the navigation. */
  readonly Icon?: ComponentType;
  readonly load: () => Promise<{ readonly default: ComponentType }>;
  /** Permission at the installation that the page requires; absent for everyone. */
  readonly permission?: Permission;
}

export const INSTALLATION_PAGES: readonly PageEntry[] = [
  { path: '/', title: 'Home', Icon: icons.IconHome, load: async () => home },
  { path: '/audit', title: 'Audit', Icon: icons.IconAudit, load: () => import('../pages/audit') },
  { path: '/access', title: 'Operators', Icon: icons.IconAccess, load: () => import('../pages/access') },
];

export const SITE_PAGES: readonly PageEntry[] = [
  { path: '/setup', title: 'Set-up', Icon: icons.IconSetUp, load: () => import('../pages/setup') },
  { path: '/sources', title: 'Sources', Icon: icons.IconSource, load: () => import('../pages/sources') },
  { path: '/policies', title: 'Policies', Icon: icons.IconPolicy, load: () => import('../pages/policies') },
  {
    path: '/approvals',
    title: 'Approvals',
    Icon: icons.IconApproval,
    load: () => import('../pages/approvals'),
  },
  { path: '/keys', title: 'Keys', Icon: icons.IconKey, load: () => import('../pages/keys') },
  { path: '/blocked', title: 'Blocked', Icon: icons.IconBlocked, load: () => import('../pages/blocked') },
  {
    path: '/clients',
    title: 'Clients and routes',
    Icon: icons.IconRoute,
    load: () => import('../pages/clients'),
  },
  { path: '/targets', title: 'Targets', Icon: icons.IconTarget, load: () => import('../pages/targets') },
  { path: '/reasons', title: 'Denials', Icon: icons.IconDenial, load: () => import('../pages/reason') },
  {
    path: '/explain',
    title: 'Explain a request',
    Icon: icons.IconExplain,
    load: () => import('../pages/explain'),
  },
];

/** Pages that only other pages link to. */
export const SITE_DETAIL_PAGES: readonly PageEntry[] = [
  { path: '/sources/$sourceId', title: 'Source', load: () => import('../pages/source') },
  { path: '/policies/$policyId', title: 'Policy', load: () => import('../pages/policy') },
  { path: '/approvals/$enrollmentId', title: 'Enrollment', load: () => import('../pages/approval') },
  { path: '/routes/$routeId', title: 'Route', load: () => import('../pages/route') },
  { path: '/reasons/$code', title: 'Reason', load: () => import('../pages/reason') },
  { path: '/keys/$keyId', title: 'Key', load: () => import('../pages/key') },
];
