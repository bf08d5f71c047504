/** Creates the services of all configuration resources and registers their routes. */
import { AccessTokens } from '../../configuration/access-tokens.ts';
import { Brokers } from '../../configuration/brokers.ts';
import { Clients } from '../../configuration/clients.ts';
import { Environments } from '../../configuration/environments.ts';
import { Fleets } from '../../configuration/fleets.ts';
import { Grants } from '../../configuration/grants.ts';
import { RoleGrants } from '../../configuration/role-grants.ts';
import { RouteSources, Routes } from '../../configuration/routes.ts';
import { SigningKeyAdministration } from '../../configuration/signing-keys.ts';
import { type CreateSiteKeys, Sites } from '../../configuration/sites.ts';
import { Targets } from '../../configuration/targets.ts';
import type { SiteSigningKeys } from '../../publishing/bundle-signing-keys.ts';
import type { ConfigurationDeps } from '../../resource/change.ts';
import type { ControlApp } from '../app.ts';
import { registerAuditEventRoutes } from './audit-events-api.ts';
import { registerBrokerRoutes } from './brokers-api.ts';
import { registerClientRoutes, registerGrantRoutes } from './clients-api.ts';
import { registerEnvironmentRoutes, registerFleetRoutes } from './hierarchy-api.ts';
import { registerAccessTokenRoutes, registerRoleGrantRoutes } from './operators-api.ts';
import { registerSigningKeyRoutes } from './signing-keys-api.ts';
import { registerRouteRoutes, registerRouteSourcesRoutes } from './site-policy-api.ts';
import { registerSiteRoutes } from './sites-api.ts';
import { registerTargetRoutes } from './targets-api.ts';

export interface ConfigurationRoutesDeps extends ConfigurationDeps {
  readonly createSiteKeys: CreateSiteKeys;
  readonly keyring: SiteSigningKeys;
}

export function registerConfigurationRoutes(app: ControlApp, deps: ConfigurationRoutesDeps): void {
  registerEnvironmentRoutes(app, new Environments(deps));
  registerFleetRoutes(app, new Fleets(deps));
  registerSiteRoutes(app, new Sites(deps));
  registerSigningKeyRoutes(app, new SigningKeyAdministration(deps));
  registerBrokerRoutes(app, new Brokers(deps));
  registerTargetRoutes(app, new Targets(deps));
  registerClientRoutes(app, new Clients(deps));
  registerGrantRoutes(app, new Grants(deps));
  registerRouteRoutes(app, new Routes(deps));
  registerRouteSourcesRoutes(app, new RouteSources(deps));
  registerRoleGrantRoutes(app, new RoleGrants(deps));
  registerAccessTokenRoutes(app, new AccessTokens(deps));
  registerAuditEventRoutes(app, deps.store);
}
