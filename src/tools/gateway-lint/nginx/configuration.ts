/** nginx configuration as its directives. Source: nginx, "Configuration file's structure". Files that it includes are not read. */
import { type Place, UnreadableText } from '../gateway/source-file.ts';

export interface Directive {
  readonly name: string;
  readonly values: readonly string[];
  readonly place: Place;
  /** Directives of a block; empty for others. */
  readonly block: readonly Directive[];
  /** The block that contains it; undefined at the top. */
  readonly parent: Directive | undefined;
}

interface Token {
  readonly text: string;
  readonly place: Place;
  /** `;`, `{` or `}`, not quoted. */
  readonly isMark: boolean;
}

/** Undefined for a text without a `server` or `location`. @throws UnreadableText */
export function readNginx(text: string): readonly Directive[] | undefined {
  const reader = { tokens: tokensOf(text), at: 0 };
  const directives = readBlock(reader, undefined);
  const isNginx = everyDirective(directives).some(({ name }) => name === 'server' || name === 'location');
  return isNginx ? directives : undefined;
}

export function everyDirective(directives: readonly Directive[]): readonly Directive[] {
  return directives.flatMap((directive) => [directive, ...everyDirective(directive.block)]);
}

interface Reader {
  readonly tokens: readonly Token[];
  at: number;
}

function readBlock(reader: Reader, parent: Directive | undefined): readonly Directive[] {
  const directives: Directive[] = [];
  for (let token = reader.tokens[reader.at]; token !== undefined; token = reader.tokens[reader.at]) {
    if (token.isMark && token.text === '}' && parent !== undefined) return directives;
    directives.push(readDirective(reader, token, parent));
  }
  if (parent !== undefined) throw unreadable('a block without its end', parent.place);
  return directives;
}

function readDirective(reader: Reader, name: Token, parent: Directive | undefined): Directive {
  const words: string[] = [];
  for (let token = reader.tokens[reader.at]; token !== undefined; token = reader.tokens[reader.at]) {
    reader.at += 1;
    if (!token.isMark) {
      words.push(token.text);
      continue;
    }
    if (words.length === 0 || token.text === '}')
      throw unreadable(`${token.text} is not expected`, token.place);
    const block: Directive[] = [];
    const directive = { name: words[0] ?? '', values: words.slice(1), place: name.place, block, parent };
    if (token.text === '{') {
      block.push(...readBlock(reader, directive));
      reader.at += 1;
    }
    return directive;
  }
  throw unreadable('a directive without its end', name.place);
}

function unreadable(what: string, { line, column }: Place): UnreadableText {
  return new UnreadableText(`${what} at line ${line}, column ${column}`);
}

/** White space and comments; a mark; a quoted word; a word, in which `${name}` is a variable and a backslash escapes. */
const LEXEMES = [
  /(?:\s|#[^\n]*)+/y,
  /[;{}]/y,
  /"((?:[^"\\]|\\[\s\S])*)"/y,
  /'((?:[^'\\]|\\[\s\S])*)'/y,
  /(?:\$\{|\\[\s\S]|[^\s;{\\])+/y,
] as const;

/** @throws UnreadableText for a quote without its end */
function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let lineStart = 0;
  for (let at = 0; at < text.length; ) {
    const place = { line, column: at - lineStart + 1 };
    const kind = LEXEMES.findIndex((lexeme) => matchAt(lexeme, text, at));
    const lexeme = LEXEMES[kind];
    // An unfinished quote would be read as a word.
    if (lexeme === undefined || (kind === 4 && /["']/.test(text[at] ?? ''))) {
      throw unreadable('a quote without its end', place);
    }
    const [whole = '', quoted] = matchAt(lexeme, text, at) ?? [];
    if (kind > 0) tokens.push({ text: quoted ?? whole, place, isMark: kind === 1 });
    for (let end = whole.indexOf('\n'); end >= 0; end = whole.indexOf('\n', end + 1)) {
      line += 1;
      lineStart = at + end + 1;
    }
    at += whole.length;
  }
  return tokens;
}

function matchAt(lexeme: RegExp, text: string, at: number): RegExpExecArray | null {
  lexeme.lastIndex = at;
  return lexeme.exec(text);
}
