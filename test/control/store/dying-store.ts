/** A store whose process dies at a write. */
import type { ControlStore } from '../../../src/control/store/port.ts';

export class Killed extends Error {}

/** A store that dies at one write, counted from 0, before or right after its commit. */
export function dyingStore(store: ControlStore, when: 'before' | 'after', atWrite = 0): ControlStore {
  let writes = 0;
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (name !== 'writeUnaudited' && name !== 'mutate') return member.bind(target);
      return async (...args: unknown[]) => {
        const isLast = writes++ === atWrite;
        if (isLast && when === 'before') throw new Killed();
        const result: unknown = await member.apply(target, args);
        if (isLast) throw new Killed();
        return result;
      };
    },
  });
}
