/**
 * A node of a configuration, read as protobuf's JSON form: members in snake case or camel case, `null` as absent, aliases and merge
 * keys followed. No node is assumed to have the right form.
 */
import { isAlias, isMap, isScalar, isSeq, type Node, Scalar } from 'yaml';
import type { Place, Source } from './source-file.ts';

export interface Member {
  /** Name as written. */
  readonly name: string;
  readonly view: View;
}

export class View {
  readonly #source: Source;
  /** Never an alias. */
  readonly #node: Node;
  readonly #key: Node | undefined;

  constructor(source: Source, node: Node, key?: Node) {
    this.#source = source;
    this.#node = node;
    this.#key = key;
  }

  static ofDocument(source: Source): View | undefined {
    return source.root === null ? undefined : new View(source, source.root);
  }

  /** The same for each alias of one node. */
  get identity(): Node {
    return this.#node;
  }

  get isMapping(): boolean {
    return isMap(this.#node);
  }

  /** The place of the setting's name, or of an element of a list. */
  get place(): Place {
    return this.#source.placeOf(this.#key ?? this.#node);
  }

  /** @param name in snake case */
  get(name: string): View | undefined {
    return this.members().findLast((member) => snakeCase(member.name) === name)?.view;
  }

  /** The member at a path of names. */
  at(...names: readonly string[]): View | undefined {
    return names.reduce<View | undefined>((view, name) => view?.get(name), this);
  }

  /** Finds a member by its name exactly as written, for mappings whose names are data. */
  named(name: string): View | undefined {
    return this.members().findLast((member) => member.name === name)?.view;
  }

  /** Own members, and merged members with other names. Each mapping is merged once, the nearest first. */
  members(): readonly Member[] {
    const found: Member[] = [];
    const names = new Set<string>();
    const merged = new Set<Node>();
    const waiting: Node[] = [this.#node];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (merged.has(node)) continue;
      merged.add(node);
      const { merges, own } = this.#directMembers(node);
      found.push(...own.filter(({ name }) => !names.has(snakeCase(name))));
      for (const { name } of own) names.add(snakeCase(name));
      waiting.push(...merges.toReversed());
    }
    return found;
  }

  /** A mapping's own members, and the mappings that its merge keys name. */
  #directMembers(node: Node): { readonly own: readonly Member[]; readonly merges: readonly Node[] } {
    const own: Member[] = [];
    const merges: Node[] = [];
    for (const { at, key, value } of this.#entries(node)) {
      const target = this.#target(value);
      if (target === undefined) continue;
      if (key.value === '<<' && key.type === Scalar.PLAIN) {
        merges.push(...(isSeq(target) ? target.items.flatMap((item) => this.#target(item) ?? []) : [target]));
      } else if (!isNull(target)) {
        own.push({ name: String(key.value), view: new View(this.#source, target, at) });
      }
    }
    return { own, merges };
  }

  /** A mapping's names, which may be aliases, with their nodes, without names that its reader ignores. */
  #entries(node: Node): readonly { readonly at: Node; readonly key: Scalar; readonly value: unknown }[] {
    if (!isMap<Node>(node)) return [];
    return node.items.flatMap(({ key: at, value }) => {
      const key = this.#target(at);
      return isScalar(key) && !this.#source.isIgnored(key) ? [{ at, key, value }] : [];
    });
  }

  /** Members with the name of an earlier member, in either spelling. */
  repeated(): readonly View[] {
    const seen = new Set<string>();
    return this.#entries(this.#node).flatMap(({ at, key, value }) => {
      const text = String(key.value);
      const name = /^[A-Za-z_0-9]+$/.test(text) ? snakeCase(text) : text;
      const isRepeated = seen.has(name);
      seen.add(name);
      return isRepeated ? [new View(this.#source, this.#target(value) ?? key, at)] : [];
    });
  }

  #target(value: unknown): Node | undefined {
    if (!isMap(value) && !isSeq(value) && !isScalar(value) && !isAlias(value)) return undefined;
    return this.#source.target(value);
  }

  /** Elements of a list; empty for anything else. */
  items(): readonly View[] {
    if (!isSeq(this.#node)) return [];
    return this.#node.items.flatMap((item) => {
      const target = this.#target(item);
      return target === undefined || isNull(target) ? [] : [new View(this.#source, target)];
    });
  }

  /** Elements of the list under a name. */
  list(name: string): readonly View[] {
    return this.get(name)?.items() ?? [];
  }

  /** A scalar, as text; also one that is wrapped (`{ value: true }`), as Envoy accepts. */
  get text(): string | undefined {
    return isScalar(this.#node) ? String(this.#node.value) : this.#wrapped()?.text;
  }

  #wrapped(): View | undefined {
    const [member, ...more] = this.members();
    const isWrapper = member?.name === 'value' && more.length === 0;
    // Only one wrapper is removed, because aliases could form a cycle.
    return isWrapper && isScalar(member.view.identity) ? member.view : undefined;
  }

  /** Undefined for anything else, such as a template's text. Envoy and Kubernetes also read the words of YAML 1.1. */
  get flag(): boolean | undefined {
    const word = this.text?.toLowerCase() ?? '';
    if (/^(?:true|yes|y|on)$/.test(word)) return true;
    return /^(?:false|no|n|off)$/.test(word) ? false : undefined;
  }

  /** Undefined also for a leading zero, because Envoy and Kubernetes read `0100` as 64. */
  get number(): number | undefined {
    if (!isScalar(this.#node)) return this.#wrapped()?.number;
    const text = this.text ?? '';
    if (/^-?0\d/.test(this.#node.source ?? text)) return undefined;
    return /^-?\d+(?:\.\d+)?(?:e\+?\d+)?$/i.test(text) ? Number(text) : undefined;
  }

  /** Protobuf's durations, as text (`0.5s`) or message (`{ seconds: 1 }`), and those of Go (`1m30s`). */
  get seconds(): number | undefined {
    const whole = this.get('seconds')?.number;
    const nanos = this.get('nanos')?.number;
    if (whole !== undefined || nanos !== undefined) return (whole ?? 0) + (nanos ?? 0) * 1e-9;
    const text = this.text ?? '';
    if (!/^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|ns))+$/.test(text)) return undefined;
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|ns)/g)];
    return parts.reduce((sum, [, size, unit]) => sum + Number(size) * (SECONDS_OF[unit ?? ''] ?? 0), 0);
  }

  /** An enum's value, which may be written as name or number. */
  isOneOf(...values: readonly (string | number)[]): boolean {
    return values.some((value) => String(value) === this.text);
  }

  /** Documents in a text, as ConfigMaps hold them. @throws UnreadableText */
  documents(): readonly View[] {
    return this.#source.within(this.#node).flatMap((source) => View.ofDocument(source) ?? []);
  }
}

const SECONDS_OF: { readonly [unit: string]: number } = {
  h: 3600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  ns: 1e-9,
};

function isNull(node: Node): boolean {
  return isScalar(node) && node.value === null;
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** All nested mappings, each once, even if several aliases refer to it. */
export function everyMapping(roots: readonly View[]): readonly View[] {
  const seen = new Set<Node>();
  const found: View[] = [];
  const waiting = [...roots];
  for (let view = waiting.pop(); view !== undefined; view = waiting.pop()) {
    if (seen.has(view.identity)) continue;
    seen.add(view.identity);
    if (view.isMapping) found.push(view);
    waiting.push(
      ...(view.isMapping ? view.members().map((member) => member.view) : view.items()).toReversed(),
    );
  }
  return found;
}
