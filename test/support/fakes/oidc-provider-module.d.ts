/** The parts of oidc-provider 9 that the tests use; the package has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Account {
    readonly accountId: string;
    claims(): Promise<{ readonly sub: string; readonly [claim: string]: unknown }>;
  }

  export default class Provider {
    constructor(issuer: string, configuration: { readonly [name: string]: unknown });
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    proxy: boolean;
  }
}
