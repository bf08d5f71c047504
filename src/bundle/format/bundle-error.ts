/**
 * Errors of a bundle, its files or its chain. The set of codes is closed. Each error names the file, the position in
 * its document and, where that is safe, the value. Tests assert code and path, never the text.
 * Source: docs/design/bundle.md "Rules that a load enforces".
 */

export type BundleErrorCode =
  // files
  | 'file_missing'
  | 'file_unreadable'
  | 'file_not_regular'
  | 'file_too_large'
  | 'file_not_written'
  // signed documents
  | 'document_malformed'
  | 'header_malformed'
  | 'document_type'
  | 'signature_invalid'
  | 'signatures_insufficient'
  | 'payload_malformed'
  // shape of a payload
  | 'unknown_member'
  | 'missing_member'
  | 'value_invalid'
  // content
  | 'auth_site_mismatch'
  | 'time_invalid'
  | 'time_order'
  | 'duplicate'
  | 'origin_invalid'
  | 'origin_not_of_site'
  | 'template_invalid'
  | 'route_conflict'
  | 'header_not_signable'
  | 'max_staleness_missing'
  | 'source_set_missing'
  | 'route_unknown'
  | 'subject_selector'
  | 'subject_prefix_open'
  | 'subject_outside_trust_domain'
  | 'subject_not_canonical'
  | 'client_unknown'
  | 'issuer_of_client'
  | 'key_refused'
  | 'key_algorithm'
  | 'shard_mismatch'
  | 'client_in_use'
  // chain
  | 'revision_lower'
  | 'revision_conflict'
  | 'revision_step'
  | 'chain_broken'
  | 'mark_missing'
  | 'mark_corrupt'
  | 'mark_unavailable'
  | 'mark_of_another_site'
  | 'state_dir_in_use'
  // life in the verifier
  | 'refused_by_policy'
  | 'expired'
  | 'internal'
  // authoring
  | 'yaml_invalid'
  | 'signing_key_missing'
  | 'previous_bundle';

/** One fault. `path` is a JSON Pointer (RFC 6901) into the document; empty means the document as a whole. */
export interface BundleFault {
  readonly code: BundleErrorCode;
  readonly file: string;
  readonly path: string;
  /** What is wrong, without file and path. Quotes short values, never key material. */
  readonly text: string;
}

/** Maximum number of faults in one error. */
const MAX_FAULTS = 20;

/** Thrown for anything that prevents a bundle from being loaded, signed or freshened. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
  /** Code of the first fault. */
  readonly code: BundleErrorCode;
  /** Name of the file, without its directory. */
  readonly file: string;
  readonly path: string;
  /** All faults found, at most {@link MAX_FAULTS}, in the order of the document's rules. */
  readonly faults: readonly BundleFault[];

  constructor(first: BundleFault, ...more: readonly BundleFault[]) {
    const faults = [first, ...more].slice(0, MAX_FAULTS);
    super(faults.map(describeFault).join('\n'));
    this.code = first.code;
    this.file = first.file;
    this.path = first.path;
    this.faults = faults;
  }
}

export function bundleError(code: BundleErrorCode, file: string, path: string, text: string): BundleError {
  return new BundleError({ code, file, path, text });
}

/** Converts any error, so that no file can crash the verifier. An error of another class is internal, and its text unsafe. */
export function asBundleError(error: unknown, file: string): BundleError {
  if (error instanceof BundleError) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return bundleError('internal', file, '', `unexpected ${name}`);
}

export function describeFault({ file, path, text }: BundleFault): string {
  return path === '' ? `${file}: ${text}` : `${file}: ${path}: ${text}`;
}

/** Collects the faults of one document, so that its author sees all of them. */
export class Faults {
  readonly #file: string;
  readonly #isBeingWritten: boolean;
  readonly #found: BundleFault[] = [];
  readonly #warnings: BundleFault[] = [];

  /** @param file name of the file, for errors */
  constructor(file: string, isBeingWritten = false) {
    this.#file = file;
    this.#isBeingWritten = isBeingWritten;
  }

  add(code: BundleErrorCode, path: string, text: string): void {
    if (this.#found.length < MAX_FAULTS) this.#found.push({ code, file: this.#file, path, text });
  }

  /** Adds a fault that prevents only signing. A document that was signed earlier may have it, and still loads. */
  warn(code: BundleErrorCode, path: string, text: string): void {
    if (this.#isBeingWritten) this.add(code, path, text);
    else if (this.#warnings.length < MAX_FAULTS) this.#warnings.push({ code, file: this.#file, path, text });
  }

  get warnings(): readonly BundleFault[] {
    return this.#warnings;
  }

  /** All added faults as one error; undefined when there are none. */
  toError(): BundleError | undefined {
    const [first, ...more] = this.#found;
    return first === undefined ? undefined : new BundleError(first, ...more);
  }

  /** @throws BundleError with all added faults, if there are any */
  throwIfAny(): void {
    const error = this.toError();
    if (error !== undefined) throw error;
  }
}

const MAX_SHOWN_CHARACTERS = 80;

/** Formats a value for an error: JSON, truncated. Never for members that may contain a key by mistake. */
export function showValue(value: unknown): string {
  // Larger parts of a document may contain a misplaced secret, such as a private key.
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  const json = JSON.stringify(value) ?? String(value);
  return json.length <= MAX_SHOWN_CHARACTERS ? json : `${cut(json, MAX_SHOWN_CHARACTERS)}…`;
}

/** The beginning of a text, in whole characters. @param most UTF-16 units */
export function cut(text: string, most: number): string {
  return text.slice(0, most).replace(/\p{Cs}$/u, '');
}

/** One step of a JSON Pointer (RFC 6901 section 3). */
export function pointer(...steps: readonly (string | number)[]): string {
  let path = '';
  for (const step of steps) path += `/${typeof step === 'number' ? step : escapeStep(step)}`;
  return path;
}

function escapeStep(step: string): string {
  return /[~/]/.test(step) ? step.replaceAll('~', '~0').replaceAll('/', '~1') : step;
}
