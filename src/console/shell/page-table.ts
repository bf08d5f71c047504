/** Every page of the console, in the order of the navigation. Each except Home is loaded when it is first opened. */
import type { ComponentType } from 'react';
import type { Permission } from '../api/permissions';
import * as home from '../pages/home';

export interface PageEntry {
  /** Path below the installation or `/sites/<site>`, with parameters in the syntax of TanStack Router. */
  readonly path: string;
  readonly title: string;
  readonly load: () => Promise<{ readonly default: ComponentType }>;
  /** Permission at the installation that the page requires; absent for everyone. */
  readonly permission?: Permission;
}

export const INSTALLATION_PAGES: readonly PageEntry[] = [
  { path: '/', title: 'Home', load: async () => home },
  { path: '/audit', title: 'Audit', load: () => import('../pages/audit') },
  { path: '/access', title: 'Access', load: () => import('../pages/access') },
];

export const SITE_PAGES: readonly PageEntry[] = [
  { path: '/setup', title: 'Set-up', load: () => import('../pages/setup') },
  { path: '/sources', title: 'Sources', load: () => import('../pages/sources') },
  { path: '/policies', title: 'Policies', load: () => import('../pages/policies') },
  { path: '/approvals', title: 'Approvals', load: () => import('../pages/approvals') },
  { path: '/keys', title: 'Keys', load: () => import('../pages/keys') },
  { path: '/blocked', title: 'Blocked', load: () => import('../pages/blocked') },
  { path: '/clients', title: 'Clients and routes', load: () => import('../pages/clients') },
  { path: '/targets', title: 'Targets', load: () => import('../pages/targets') },
  { path: '/try-request', title: 'Try a request', load: () => import('../pages/try-request') },
];

/** Pages that only other pages link to. */
export const SITE_DETAIL_PAGES: readonly PageEntry[] = [
  { path: '/sources/$sourceId', title: 'Source', load: () => import('../pages/source') },
  { path: '/policies/$policyId', title: 'Policy', load: () => import('../pages/policy') },
  { path: '/approvals/$enrollmentId', title: 'Enrollment', load: () => import('../pages/approval') },
  { path: '/routes/$routeId', title: 'Route', load: () => import('../pages/route') },
  { path: '/reasons', title: 'Denials', load: () => import('../pages/reason') },
  { path: '/reasons/$code', title: 'Reason', load: () => import('../pages/reason') },
  { path: '/keys/$keyId', title: 'Key', load: () => import('../pages/key') },
];
