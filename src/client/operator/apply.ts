/** Applies a plan step by step. A failed step ends the run; the completed steps remain, and the next run continues. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { activateSource } from './activate-source.ts';
import { type ControlApi, textMember } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { brokerPath, clientPath, grantPath, issuerPath, revisionPath, routePath, sitePath } from './paths.ts';
import {
  CLIENT_FIELDS,
  newestRevision,
  type PlanStep,
  POLICY_FIELDS,
  ROUTE_FIELDS,
  SITE_FIELDS,
  SOURCE_FIELDS,
  SOURCE_REVISION_FIELDS,
} from './plan.ts';
import { brokerName, type CurrentSite, type SiteFile, type SiteSource } from './site-file.ts';

export interface ApplyOptions {
  readonly api: ControlApi;
  readonly file: SiteFile;
  readonly current: CurrentSite;
  /** Called after each step. */
  readonly onDone: (step: PlanStep) => void;
  /** Called repeatedly while a source is not active yet. */
  readonly onWaiting: (text: string) => void;
  /** Must store a new target's token, which Control shows only once. */
  readonly keepTargetToken: (targetName: string, token: string) => Promise<void>;
  /** Timeout for the activation of a source. */
  readonly activationTimeoutMs: number;
}

type StepHandler = (step: PlanStep) => Promise<void>;

export async function applyPlan(steps: readonly PlanStep[], options: ApplyOptions): Promise<void> {
  const run = new SiteRun(options);
  for (const step of steps) {
    await run.perform(step);
    options.onDone(step);
  }
}

class SiteRun {
  readonly #api: ControlApi;
  readonly #file: SiteFile;
  readonly #options: ApplyOptions;
  #environmentId: string | undefined;
  #fleetId: string | undefined;

  constructor(options: ApplyOptions) {
    this.#options = options;
    this.#api = options.api;
    this.#file = options.file;
    this.#environmentId = options.current.environmentId;
    this.#fleetId = options.current.fleetId;
  }

  readonly #handlers: { readonly [action: string]: StepHandler } = {
    'create environment': async ({ name }) => {
      this.#environmentId = await this.#createNamed('/v1/environments', { name }, 'environment_id');
    },
    'create fleet': async ({ name }) => {
      const path = `/v1/environments/${this.#environmentId}/fleets`;
      this.#fleetId = await this.#createNamed(path, { name }, 'fleet_id');
    },
    'create site': async () => {
      const { site } = this.#file;
      await this.#api.create(`/v1/fleets/${this.#fleetId}/sites`, {
        ...site,
        display_name: site.display_name ?? site.site_id,
      });
    },
    'change site': () => this.#patch(this.#sitePath, pick(this.#file.site, SITE_FIELDS)),
    'create broker': ({ name }) => this.#createBroker(name),
    'change broker': ({ name }) => this.#changeBroker(name),
    'remove broker': ({ name }) => this.#remove(this.#brokerPath(name)),
    'create client': async ({ name }) => {
      await this.#api.create(`${this.#sitePath}/clients`, { client_id: name, ...this.#clientFields(name) });
    },
    'change client': ({ name }) => this.#patch(clientPath(this.#siteId, name), this.#clientFields(name)),
    'remove client': ({ name }) => this.#remove(clientPath(this.#siteId, name)),
    'create grant': ({ name }) => this.#putGrant(name),
    'change grant': ({ name }) => this.#putGrant(name),
    'remove grant': async ({ name }) => this.#api.remove(this.#grantPath(name), undefined),
    'create route': async ({ name }) => {
      await this.#api.create(`${this.#sitePath}/routes`, {
        route_id: name,
        definition: this.#routeDefinition(name),
      });
    },
    'change route': async ({ name }) => {
      const path = routePath(this.#siteId, name);
      await this.#api.put(path, { definition: this.#routeDefinition(name) }, await this.#etag(path));
    },
    'remove route': ({ name }) => this.#remove(routePath(this.#siteId, name)),
    'create route_sources': ({ name }) => this.#putRouteSources(name),
    'change route_sources': ({ name }) => this.#putRouteSources(name),
    'create source': ({ name }) => this.#createSource(name),
    'change source': ({ name }) => this.#changeSource(name),
    'activate source': ({ name }) => this.#activateSource(name),
    'create enrollment_policy': ({ name }) => this.#createPolicy(name),
    'change enrollment_policy': ({ name }) => this.#changePolicy(name),
    'remove enrollment_policy': async ({ name }) =>
      this.#remove(`/v1/enrollment-policies/${await this.#policyId(name)}`),
    'create target': ({ name }) => this.#createTarget(name),
  };

  async perform(step: PlanStep): Promise<void> {
    const handler = this.#handlers[`${step.verb} ${step.kind}`];
    if (handler === undefined) throw new Error(`no such step: ${step.verb} ${step.kind}`);
    await handler(step);
  }

  get #siteId(): string {
    return this.#file.site.site_id;
  }

  get #sitePath(): string {
    return sitePath(this.#siteId);
  }

  async #createNamed(path: string, body: object, idMember: string): Promise<string> {
    return textMember((await this.#api.create(path, body)).body, idMember);
  }

  async #etag(path: string): Promise<string | undefined> {
    return (await this.#api.get(path)).etag;
  }

  async #patch(path: string, body: object): Promise<void> {
    await this.#api.patch(path, body, await this.#etag(path));
  }

  async #remove(path: string): Promise<void> {
    await this.#api.remove(path, await this.#etag(path));
  }

  /** A broker's step is named `issuer trust_domain`. Control up to 0.3.0 has the issuer alone in its paths. */
  #brokerPath(stepName: string): string {
    const [issuer = '', trustDomain = ''] = stepName.split(' ');
    const isOfOlderControl = this.#options.current.brokers.get(stepName)?.published === undefined;
    return isOfOlderControl
      ? issuerPath(this.#siteId, issuer)
      : brokerPath(this.#siteId, issuer, trustDomain);
  }

  #brokerBody(stepName: string, keys: unknown): JsonObject {
    const declared = named(this.#file.brokers, (each) => brokerName(each) === stepName);
    const { issuer: _, url, ...definition } = declared;
    return {
      definition: { ...definition, keys: keys ?? declared.keys ?? [] },
      ...(url === undefined ? {} : { url }),
    };
  }

  async #createBroker(stepName: string): Promise<void> {
    // This path creates the broker of the trust domain in the body, at Control of any version.
    await this.#api.put(this.#brokerPath(stepName), this.#brokerBody(stepName, undefined), undefined);
  }

  /** Keeps the keys that are pinned now. */
  async #changeBroker(stepName: string): Promise<void> {
    const path = this.#brokerPath(stepName);
    const { body, etag } = await this.#api.get(path);
    const pinned = isJsonObject(body.definition) ? body.definition.keys : undefined;
    await this.#api.put(path, this.#brokerBody(stepName, pinned), etag);
  }

  #clientFields(clientId: string): JsonObject {
    const declared = named(this.#file.clients, (each) => each.client_id === clientId);
    return { ...pick(declared, CLIENT_FIELDS), context: declared.context ?? {} };
  }

  /** A grant's step is named `client resource`. */
  #grantPath(stepName: string): string {
    const [clientId = '', resource = ''] = stepName.split(' ');
    return grantPath(this.#siteId, clientId, resource);
  }

  async #putGrant(stepName: string): Promise<void> {
    const [clientId, resource] = stepName.split(' ');
    const declared = named(this.#file.clients, (each) => each.client_id === clientId);
    const { access } = named(declared.grants, (each) => each.resource === resource);
    await this.#api.put(this.#grantPath(stepName), { access }, undefined);
  }

  #routeDefinition(routeId: string): JsonObject {
    return pick(
      named(this.#file.routes, (each) => each.route_id === routeId),
      ROUTE_FIELDS,
    );
  }

  async #putRouteSources(routeId: string): Promise<void> {
    const { allowed_sources } = named(this.#file.routes, (each) => each.route_id === routeId);
    const path = `${routePath(this.#siteId, routeId)}/sources`;
    const held = await this.#api.find(path);
    await this.#api.put(path, { allowed_sources }, held?.etag);
  }

  #declaredSource(name: string): SiteSource {
    return named(this.#file.sources, (each) => each.name === name);
  }

  async #source(name: string): Promise<JsonObject> {
    const sources = await this.#api.list(`${this.#sitePath}/sources`);
    const found = sources.find((each) => each.display_name === name && newestRevision(each) !== undefined);
    if (found === undefined) throw new OperatorError('refused', 'not_found', `there is no source ${name}`);
    return found;
  }

  async #createSource(name: string): Promise<void> {
    const declared = this.#declaredSource(name);
    await this.#api.create(`${this.#sitePath}/sources`, {
      kind: declared.kind ?? 'oidc_jwks',
      display_name: name,
      ...pick(declared, [...SOURCE_REVISION_FIELDS, ...SOURCE_FIELDS]),
    });
  }

  /** Coordinates of a draft are edited; those of an active revision make a new draft beside it. */
  async #changeSource(name: string): Promise<void> {
    const declared = this.#declaredSource(name);
    const source = await this.#source(name);
    const sourceId = textMember(source, 'source_id');
    const settings = pick(declared, SOURCE_FIELDS);
    if (Object.keys(settings).length > 0) await this.#patch(`/v1/sources/${sourceId}`, settings);
    const newest = newestRevision(source);
    const coordinates = pick(declared, SOURCE_REVISION_FIELDS);
    if (newest === undefined || SOURCE_REVISION_FIELDS.every((field) => newest[field] === declared[field]))
      return;
    if (['draft', 'failed_draft', 'validated'].includes(String(newest.state))) {
      await this.#patch(revisionPath(sourceId, Number(newest.revision)), coordinates);
    } else {
      await this.#api.create(`/v1/sources/${sourceId}/revisions`, coordinates);
    }
  }

  async #activateSource(name: string): Promise<void> {
    const { activationTimeoutMs, onWaiting } = this.#options;
    await activateSource(this.#api, {
      siteId: this.#siteId,
      declared: this.#declaredSource(name),
      source: await this.#source(name),
      timeoutMs: activationTimeoutMs,
      onWaiting,
    });
  }

  async #policyFields(
    name: string,
  ): Promise<{ readonly source: JsonObject; readonly changeable: JsonObject }> {
    const declared = named(this.#file.enrollment_policies, (each) => each.name === name);
    const source = await this.#source(declared.source);
    return {
      source: { source_id: textMember(source, 'source_id') },
      changeable: { ...pick(declared, POLICY_FIELDS), source_revision: newestRevision(source)?.revision },
    };
  }

  async #createPolicy(name: string): Promise<void> {
    const declared = named(this.#file.enrollment_policies, (each) => each.name === name);
    const { source, changeable } = await this.#policyFields(name);
    await this.#api.create(`${this.#sitePath}/enrollment-policies`, {
      display_name: name,
      client_id: declared.client,
      verified_issuer: this.#declaredSource(declared.source).issuer,
      verified_subject: declared.verified_subject,
      ...source,
      ...changeable,
    });
  }

  async #changePolicy(name: string): Promise<void> {
    const path = `/v1/enrollment-policies/${await this.#policyId(name)}`;
    await this.#patch(path, (await this.#policyFields(name)).changeable);
  }

  async #policyId(name: string): Promise<string> {
    const policies = await this.#api.list(`${this.#sitePath}/enrollment-policies`);
    const found = policies.find((each) => each.display_name === name && each.state !== 'deleted');
    if (found === undefined) throw new OperatorError('refused', 'not_found', `there is no policy ${name}`);
    return textMember(found, 'policy_id');
  }

  async #createTarget(name: string): Promise<void> {
    const { body } = await this.#api.create(`${this.#sitePath}/targets`, { name });
    try {
      if (typeof body.token !== 'string') throw new Error('the token was not shown');
      await this.#options.keepTargetToken(name, body.token);
    } catch {
      const rotate = `proofgate ctl rotate-target-token ${textMember(body, 'target_id')} --out FILE`;
      const text = `target ${name} exists, but its token could not be kept; make another: ${rotate}`;
      throw new OperatorError('refused', 'target_token_lost', text);
    }
  }
}

function pick(from: object, fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(from).filter(([field]) => fields.includes(field)));
}

/** A plan only names entries of the file, so this always finds one. */
function named<T>(list: readonly T[] | undefined, matches: (item: T) => boolean): T {
  const found = list?.find(matches);
  if (found === undefined) throw new Error('a step names what the file does not');
  return found;
}
