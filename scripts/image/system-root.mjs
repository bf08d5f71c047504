/** Files of another system's root directory: links resolve inside it, and its package database names the owner of a file. */
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Failure } from '../failure.mjs';

const MOST_LINKS = 40;

/** Package database of Debian and its derivatives. */
const DPKG = 'var/lib/dpkg';

export class SystemRoot {
  #root;
  #owners;
  #packages;

  /** @param root an absolute path */
  constructor(root) {
    this.#root = root;
  }

  /**
   * @returns the resolved path on this machine of a path that is absolute in the system; undefined when it does not
   * exist
   */
  find(path) {
    let rest = path.split('/').filter(Boolean);
    let at = '/';
    for (let links = 0; rest.length > 0; ) {
      const [name, ...others] = rest;
      const next = posix.join(at, name);
      const status = lstatSync(join(this.#root, next), { throwIfNoEntry: false });
      if (status === undefined) return undefined;
      if (status.isSymbolicLink()) {
        links += 1;
        if (links > MOST_LINKS)
          throw new Failure('link_loop', `${path} of ${this.#root} leads round in a circle`);
        const target = readlinkSync(join(this.#root, next));
        rest = [...posix.resolve(at, target).split('/').filter(Boolean), ...others];
        at = '/';
      } else {
        at = next;
        rest = others;
      }
    }
    return join(this.#root, at);
  }

  /** @returns name, version and architecture of the package that owns the file @throws Failure when no package owns it */
  ownerOf(found) {
    this.#owners ??= this.#readOwners();
    const path = withoutUsr(found.slice(this.#root.replace(/\/$/, '').length));
    const owner = this.#owners.get(path);
    if (owner === undefined) {
      throw new Failure(
        'library_without_package',
        `no Debian package of ${this.#root} has ${path}: give the root of a Debian system`,
      );
    }
    this.#packages ??= this.#readPackages();
    return this.#packages.get(owner);
  }

  #readOwners() {
    const folder = join(this.#root, DPKG, 'info');
    if (!existsSync(folder)) return new Map();
    const lists = readdirSync(folder).filter((name) => name.endsWith('.list'));
    return new Map(
      lists.flatMap((list) => {
        const [name] = list.slice(0, -'.list'.length).split(':');
        const files = readFileSync(join(folder, list), 'utf8').split('\n').filter(Boolean);
        return files.map((file) => [withoutUsr(file), name]);
      }),
    );
  }

  #readPackages() {
    const paragraphs = readFileSync(join(this.#root, DPKG, 'status'), 'utf8').split(/\n\n+/);
    const packages = paragraphs.map((paragraph) => {
      const member = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1];
      return { name: member('Package'), version: member('Version'), architecture: member('Architecture') };
    });
    return new Map(packages.map((each) => [each.name, each]));
  }
}

/** Packages list /lib/…, which is a link to /usr/lib/… nowadays. */
function withoutUsr(path) {
  return path.replace(/^\/usr(?=\/lib)/, '');
}
