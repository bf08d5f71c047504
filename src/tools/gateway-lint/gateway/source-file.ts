/** The text of a file, parsed as YAML 1.2 (or JSON), with the place of each node. Aliases are not expanded: they could expand to millions. */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  type Node,
  type ParsedNode,
  parseAllDocuments,
  Scalar,
  visit,
} from 'yaml';
import { yamlFaultText } from '../../../protocol/yaml-faults.ts';

/** Both from 1, as editors count. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Thrown for text that cannot be read as YAML; the message is one line. */
export class UnreadableText extends Error {
  override readonly name = 'UnreadableText';
}

/** One document, with the places of its nodes in the file. */
export class Source {
  readonly root: Node | null;
  readonly #isEnvoys: boolean;
  readonly #targets = new Map<Alias, Node>();
  readonly #text: string;
  readonly #placeOf: (offset: number) => Place;

  constructor(document: Document<ParsedNode>, text: string, placeOf: (offset: number) => Place) {
    this.root = document.contents;
    this.#text = text;
    this.#placeOf = placeOf;
    const anchors = new Map<string, Node>();
    visit(document, (_key, node) => {
      if (isAlias(node)) {
        const target = anchors.get(node.source);
        if (target !== undefined) this.#targets.set(node, target);
      } else if (isNode(node) && node.anchor !== undefined) {
        anchors.set(node.anchor, node);
      }
    });
    this.#isEnvoys = isEnvoys(this.#names());
  }

  /** Names of the top-level members. */
  #names(): readonly string[] {
    const keys = isMap<Node>(this.root) ? this.root.items.map(({ key }) => this.target(key)) : [];
    return keys.flatMap((key) => (isScalar(key) && key.tag !== IGNORE ? [String(key.value)] : []));
  }

  /** The target of an alias; returns any other node unchanged. */
  target(node: Node): Node | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  /** Envoy ignores members whose names have this tag; readers of manifests do not. */
  isIgnored(name: Node): boolean {
    return this.#isEnvoys && name.tag === IGNORE;
  }

  placeOf(node: Node): Place {
    return this.#placeOf(node.range?.[0] ?? 0);
  }

  /**
   * YAML within a text of this document, as ConfigMaps hold it. In a literal block (`|`) places are exact; in other
   * forms they are those of the whole text.
   */
  within(node: Node): readonly Source[] {
    if (!isScalar(node) || typeof node.value !== 'string') return [];
    const { line, column } = this.placeOf(node);
    if (node.type !== Scalar.BLOCK_LITERAL) return readSources(node.value, () => ({ line, column }));
    const [start = 0, end = 0] = node.range ?? [];
    const indent = indentOf(this.#text.slice(this.#text.indexOf('\n', start), end)) - indentOf(node.value);
    const inner = placesIn(node.value);
    return readSources(node.value, (offset) => {
      const place = inner(offset);
      return { line: line + place.line, column: indent + place.column };
    });
  }
}

const IGNORE = '!ignore';

const ENVOYS = /^(?:static_?resources|dynamic_?resources|admin|layered_?runtime|resources|configs|<<)$/i;
const OTHERS = /^(?:kind|mesh_?config)$/i;

/** Whether the names of its members show that Envoy reads the document itself. */
function isEnvoys(names: readonly string[]): boolean {
  return names.some((name) => ENVOYS.test(name)) && !names.some((name) => OTHERS.test(name));
}

/** Indentation of the first line that is not empty. */
function indentOf(text: string): number {
  return /^( *)[^ \r\n]/m.exec(text)?.[1]?.length ?? 0;
}

/** @throws UnreadableText */
export function readSources(text: string, placeOf = placesIn(text)): readonly Source[] {
  try {
    const documents = parseAllDocuments(text, {
      version: '1.2',
      uniqueKeys: false,
      merge: false,
      prettyErrors: false,
    });
    return [...documents].map((document) => {
      const problem = document.errors[0];
      if (problem !== undefined) {
        const { line, column } = placeOf(problem.pos[0]);
        throw new UnreadableText(`line ${line}, column ${column}: ${yamlFaultText(problem.code)}`);
      }
      return new Source(document, text, placeOf);
    });
  } catch (error) {
    if (error instanceof RangeError) throw new UnreadableText('nested too deeply');
    throw error;
  }
}

/** Finds places of offsets in a text, in time logarithmic in the number of lines. */
function placesIn(text: string): (offset: number) => Place {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}
