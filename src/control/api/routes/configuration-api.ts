/** Creates the services of all configuration resources and registers their routes. */

import { BlockedCallers } from '../../configuration/blocked-callers.ts';
import { Brokers } from '../../configuration/brokers.ts';
import { Clients, Grants } from '../../configuration/clients.ts';
import { Environments, Fleets } from '../../configuration/environments.ts';
import { OAuthIssuers } from '../../configuration/oauth-issuers.ts';
import { AccessTokens, RoleGrants } from '../../configuration/role-grants.ts';
import { RouteSources, Routes } from '../../configuration/routes.ts';
import { SigningKeyAdministration } from '../../configuration/signing-keys.ts';
import { type CreateSiteKeys, Sites } from '../../configuration/sites.ts';
import { Targets } from '../../configuration/targets.ts';
import { OperatorSessions } from '../../operators/operator-sessions.ts';
import type { SiteSigningKeys } from '../../publishing/bundle-signing-keys.ts';
import type { ConfigurationDeps } from '../../resource/change.ts';
import type { ControlStore } from '../../store/port.ts';
import type { ControlApp } from '../app.ts';
import { registerBlockedCallerRoutes } from './blocked-callers-api.ts';
import {
  registerEnvironmentRoutes,
  registerFleetRoutes,
  registerSigningKeyRoutes,
  registerSiteRoutes,
} from './hierarchy-api.ts';
import { registerOAuthIssuerRoutes } from './oauth-issuers-api.ts';
import { registerOperatorSessionRoutes } from './operator-sessions-api.ts';
import {
  registerAccessTokenRoutes,
  registerAuditEventRoutes,
  registerRoleGrantRoutes,
} from './operators-api.ts';
import {
  registerBrokerRoutes,
  registerClientRoutes,
  registerGrantRoutes,
  registerRouteRoutes,
  registerRouteSourcesRoutes,
} from './site-policy-api.ts';
import { registerTargetRoutes } from './targets-api.ts';

export interface ConfigurationRoutesDeps extends ConfigurationDeps {
  readonly store: ControlStore;
  readonly createSiteKeys: CreateSiteKeys;
  readonly keyring: SiteSigningKeys;
}

export function registerConfigurationRoutes(app: ControlApp, deps: ConfigurationRoutesDeps): void {
  registerEnvironmentRoutes(app, new Environments(deps));
  registerFleetRoutes(app, new Fleets(deps));
  registerSiteRoutes(app, new Sites(deps));
  registerSigningKeyRoutes(app, new SigningKeyAdministration(deps));
  registerBrokerRoutes(app, new Brokers(deps));
  registerOAuthIssuerRoutes(app, new OAuthIssuers(deps));
  registerBlockedCallerRoutes(app, new BlockedCallers(deps));
  registerTargetRoutes(app, new Targets(deps));
  registerClientRoutes(app, new Clients(deps));
  registerGrantRoutes(app, new Grants(deps));
  registerRouteRoutes(app, new Routes(deps));
  registerRouteSourcesRoutes(app, new RouteSources(deps));
  registerRoleGrantRoutes(app, new RoleGrants(deps));
  registerAccessTokenRoutes(app, new AccessTokens(deps));
  registerOperatorSessionRoutes(app, new OperatorSessions(deps));
  registerAuditEventRoutes(app, deps.store);
}
