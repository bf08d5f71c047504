import { Repository } from '../../../src/control/store/repositories/repository.ts';
import { NO_LOCKS, openTransaction } from '../../../src/control/store/transaction.ts';

/**
 * Records which methods of which repositories are called, and lists all methods. Queries are written once for two databases,
 * so each must run on both.
 */
export class MethodRecord {
  readonly known: ReadonlySet<string>;
  readonly #called = new Set<string>();
  readonly #watched = new Set<object>();

  constructor() {
    // Repositories use their database only in method calls, so none is needed here.
    const unused = {} as Parameters<typeof openTransaction>[0];
    const { holdOrigins, notices, notify, ...repositories } = openTransaction(unused, NO_LOCKS);
    const known = Object.values(repositories).flatMap((repository) => {
      const { name } = repository.constructor;
      return prototypesOf(repository).flatMap((prototype) =>
        this.#watch(prototype).map((method) => `${name}.${method}`),
      );
    });
    this.known = new Set(known);
  }

  get missing(): readonly string[] {
    return [...this.known].filter((method) => !this.#called.has(method)).sort();
  }

  reset(): void {
    this.#called.clear();
  }

  /** Labels calls with the class of the instance, because tables share methods. @returns the methods */
  #watch(prototype: object): string[] {
    const called = this.#called;
    const methods = methodsOf(prototype);
    if (this.#watched.has(prototype)) return methods.map(([name]) => name);
    this.#watched.add(prototype);
    for (const [name, value] of methods) {
      Object.defineProperty(prototype, name, {
        configurable: true,
        value(...args: unknown[]) {
          called.add(`${this.constructor.name}.${name}`);
          return value.apply(this, args);
        },
      });
    }
    return methods.map(([name]) => name);
  }
}

/** Of a repository and of the class of tables that it shares, without the statements of all repositories. */
function prototypesOf(repository: object): object[] {
  const found: object[] = [];
  for (
    let prototype = Object.getPrototypeOf(repository);
    prototype !== Repository.prototype;
    prototype = Object.getPrototypeOf(prototype)
  ) {
    found.push(prototype);
  }
  return found;
}

type Method = (...args: unknown[]) => unknown;

function methodsOf(prototype: object): [string, Method][] {
  return Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { value }]) =>
    name === 'constructor' || typeof value !== 'function' ? [] : [[name, value]],
  );
}
