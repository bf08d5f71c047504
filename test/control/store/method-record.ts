import { openTransaction } from '../../../src/control/store/transaction.ts';

/**
 * Records which methods of which repositories are called, and lists all methods. Queries are written once for two databases,
 * so each must run on both.
 */
export class MethodRecord {
  readonly known: ReadonlySet<string>;
  readonly #called = new Set<string>();

  constructor() {
    // Repositories use their database only in method calls, so none is needed here.
    const unused = {} as Parameters<typeof openTransaction>[0];
    const { notices: _, notify: __, ...repositories } = openTransaction(unused, async () => {});
    this.known = new Set(
      Object.values(repositories).flatMap((repository) => this.#watch(Object.getPrototypeOf(repository))),
    );
  }

  get missing(): readonly string[] {
    return [...this.known].filter((method) => !this.#called.has(method)).sort();
  }

  reset(): void {
    this.#called.clear();
  }

  #watch(prototype: object): string[] {
    const names: string[] = [];
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (name === 'constructor' || typeof value !== 'function') continue;
      const label = `${prototype.constructor.name}.${name}`;
      const called = this.#called;
      Object.defineProperty(prototype, name, {
        configurable: true,
        value(...args: unknown[]) {
          called.add(label);
          return value.apply(this, args);
        },
      });
      names.push(label);
    }
    return names;
  }
}
