/** The demo's files, which a user would keep on disk: one folder, removed at the end. */
import { join } from 'node:path';
import { type Caller, targetName } from './site.ts';

export class DemoFiles {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Written by hand, as it were. */
  get siteYaml(): string {
    return this.#path('site.yaml');
  }

  /** Control's `--data-dir`. */
  get controlData(): string {
    return this.#path('control');
  }

  /** The operator's first token, which Control writes. */
  get operatorToken(): string {
    return join(this.controlData, 'bootstrap-token');
  }

  /** Certificate of who signed the issuer's own. */
  get issuerCa(): string {
    return this.#path('issuer-ca.pem');
  }

  /** Certificate of who signed the broker's own. */
  get brokerCa(): string {
    return this.#path('broker-ca.pem');
  }

  /** The broker's `--key-dir`. */
  get brokerKeys(): string {
    return this.#path('broker-keys');
  }

  /** The broker's `--profiles`. */
  get brokerProfiles(): string {
    return this.#path('broker-profiles');
  }

  get brokerProfile(): string {
    return join(this.brokerProfiles, 'payroll.json');
  }

  /** The socket on which the broker and the workload ask for SVIDs and trust bundles. */
  get workloadApi(): string {
    return this.#path('workload-api.sock');
  }

  /** Public keys that the verifier pins. */
  get pins(): string {
    return this.#path('pins');
  }

  /** The file into which `ctl apply` writes the verifier's token. */
  get targetTokens(): string {
    return this.directory;
  }

  get targetToken(): string {
    return join(this.targetTokens, `${targetName}.token`);
  }

  /** The verifier's `--state-dir`. */
  get state(): string {
    return this.#path('state');
  }

  /** The socket on which Envoy calls the verifier. */
  get socket(): string {
    return this.#path('verifier.sock');
  }

  /** One JSON line a decision. */
  get audit(): string {
    return this.#path('audit.jsonl');
  }

  /** The projected service-account token of a pod. */
  token(pod: string): string {
    return this.#path(`${pod}.token`);
  }

  /** A pod's private key; its enrollment is in a file beside it. */
  key(pod: string): string {
    return this.#path(`${pod}.pem`);
  }

  overreachingProfile(caller: Caller): string {
    return this.#path(`${caller.name}.overreaching.yaml`);
  }

  /** A signed request's headers, as `proofgate sign --out` writes them. */
  headers(name: string): string {
    return this.#path(`${name}.headers.txt`);
  }

  /** A request's body. */
  body(name: string): string {
    return this.#path(`${name}.json`);
  }

  #path(name: string): string {
    return join(this.directory, name);
  }
}
