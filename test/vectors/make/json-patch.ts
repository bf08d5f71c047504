/** Publishes bundles that differ little from another one as a JSON Patch of it (RFC 6902): only `add`, `remove` and `replace`. */

export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace';
  /** JSON Pointer (RFC 6901). */
  readonly path: string;
  readonly value?: unknown;
}

/** What turns one JSON value into the other. Arrays of another length are replaced as a whole. */
export function patchBetween(from: unknown, to: unknown, path = ''): readonly PatchOperation[] {
  if (JSON.stringify(from) === JSON.stringify(to)) return [];
  if (isContainer(from) && isContainer(to) && haveSameShape(from, to)) return patchMembers(from, to, path);
  return [{ op: 'replace', path, value: to }];
}

type Container = { readonly [name: string]: unknown };

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function haveSameShape(from: Container, to: Container): boolean {
  if (Array.isArray(from) !== Array.isArray(to)) return false;
  return !Array.isArray(from) || Object.keys(from).length === Object.keys(to).length;
}

function patchMembers(from: Container, to: Container, path: string): readonly PatchOperation[] {
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return names.flatMap((name): readonly PatchOperation[] => {
    const at = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (!(name in to)) return [{ op: 'remove', path: at }];
    if (!(name in from)) return [{ op: 'add', path: at, value: to[name] }];
    return patchBetween(from[name], to[name], at);
  });
}

/** @throws where an operation finds no place. */
export function applyPatch(document: unknown, operations: readonly PatchOperation[]): unknown {
  const root = { '': structuredClone(document) };
  for (const { op, path, value } of operations) {
    const steps = path.split('/').map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    let parent: unknown = root;
    for (const step of steps) parent = memberOf(parent, step);
    if (!isContainer(parent) || last in parent !== (op !== 'add'))
      throw new Error(`${op} ${path}: no such place`);
    if (op === 'remove') Reflect.deleteProperty(parent, last);
    else Reflect.set(parent, last, structuredClone(value));
  }
  return root[''];
}

function memberOf(parent: unknown, name: string): unknown {
  if (!isContainer(parent) || !(name in parent)) throw new Error(`no member ${name}`);
  return parent[name];
}
