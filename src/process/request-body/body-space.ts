/** Limits the space for the bodies of all requests of a process, in memory or on disk, with a share for each caller. */

export interface BodySpaceOptions {
  /** Maximum size of all bodies together. */
  readonly maxBytes: number;
  /** The largest accepted body; each caller has room for one. */
  readonly maxBodyBytes: number;
  /** Reports each change of the size of all bodies together. */
  readonly onChange?: (changeBytes: number) => void;
}

/** The share of all requests whose caller is not verified yet. */
export const UNVERIFIED = '';

/** Maximum part of the space for one caller, so that one caller cannot take all of it. */
const SHARE_OF_CALLER = 1 / 4;

export class BodySpace {
  readonly #options: BodySpaceOptions;
  readonly #maxBytesOfCaller: number;
  readonly #bytesOfCaller = new Map<string, number>();
  #bytes = 0;

  constructor(options: BodySpaceOptions) {
    this.#options = options;
    this.#maxBytesOfCaller = Math.max(options.maxBodyBytes, options.maxBytes * SHARE_OF_CALLER);
  }

  /** @param caller {@link UNVERIFIED}, or the name of a verified caller */
  open(caller: string): HeldSpace {
    return new HeldSpace((changeBytes) => this.#change(caller, changeBytes));
  }

  /** @returns false when there is no room; then nothing has changed */
  #change(caller: string, changeBytes: number): boolean {
    const all = this.#bytes + changeBytes;
    const ofCaller = (this.#bytesOfCaller.get(caller) ?? 0) + changeBytes;
    const isMore = !(changeBytes <= 0);
    if (isMore && !(all <= this.#options.maxBytes && ofCaller <= this.#maxBytesOfCaller)) return false;
    this.#bytes = all;
    if (ofCaller > 0) this.#bytesOfCaller.set(caller, ofCaller);
    else this.#bytesOfCaller.delete(caller);
    this.#options.onChange?.(changeBytes);
    return true;
  }
}

/** The space that one body holds. */
export class HeldSpace {
  readonly #change: (changeBytes: number) => boolean;
  #bytes = 0;

  constructor(change: (changeBytes: number) => boolean) {
    this.#change = change;
  }

  /** Holds at least this number of bytes from now on. @returns false when there is no room */
  atLeast(bytes: number): boolean {
    if (bytes <= this.#bytes) return true;
    if (!this.#change(bytes - this.#bytes)) return false;
    this.#bytes = bytes;
    return true;
  }

  /** Releases all of the space. */
  release(): void {
    if (this.#bytes > 0) this.#change(-this.#bytes);
    this.#bytes = 0;
  }
}
