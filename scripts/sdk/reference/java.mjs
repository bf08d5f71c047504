/** Reads the API of the Java SDK: public declarations with the comment above each. Their indentation says which class has them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['sdk', 'java', 'src', 'main', 'java', 'example', 'proofgate'];
/** A comment, annotations, and a declaration up to its body, its value or its end. A constant of an enum has a comma or the end of the body after it. */
const DOCUMENTED =
  /^( *)\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+(?:@\w+\s+)*([A-Z_]+(?=[,;]|\s*\})|[^{;]+?(?=\s*[{;]))/gm;

/** @returns {readonly import('./main.mjs').Entry[]} */
export function javaEntries(root) {
  const folder = join(root, ...SOURCES);
  return readdirSync(folder)
    .sort()
    .flatMap((file) => entriesIn(readFileSync(join(folder, file), 'utf8')));
}

function entriesIn(source) {
  const entries = [];
  for (const [, indent, comment, declaration] of source.matchAll(DOCUMENTED)) {
    const signature = declaration.replace(/\s+/g, ' ').replace(/\( /, '(');
    const type = /^public (?:static )?(?:final )?((?:class|enum) (\w+).*)/.exec(signature);
    const text = markdownOf(comment);
    if (type !== null) entries.push({ name: type[2], signature: type[1], text, members: [], indent });
    else if (entries.length > 0 && /^public |^[A-Z_]+$/.test(signature)) {
      // The innermost class around it: the last one that is indented less.
      const owner = entries.findLast((entry) => entry.indent.length < indent.length);
      owner.members.push({ signature: signature.replace(/^public /, ''), text });
    }
    // The first declaration of a file that is not public is that of its class.
    else if (indent === '') break;
  }
  return entries;
}

function markdownOf(comment) {
  const [text, ...tags] = comment
    .replace(/^ *\* ?/gm, '')
    .replace(/\{@\w+ ([^}]*)\}/g, (_, code) => `\`${code.replace(/^#/, '').replace('#', '.')}\``)
    .split(/^@/m);
  return [text, ...tags.map(tagText)].map((part) => part.trim()).join('\n\n');
}

/** Of `param NAME TEXT` and `throws TYPE TEXT`. */
function tagText(tag) {
  const [, kind, name, rest] = /^(\w+)\s+(\S+)\s+([\s\S]*?)\.?\s*$/.exec(tag);
  return kind === 'param' ? `\`${name}\`: ${rest}.` : `Throws ${name} ${rest}.`;
}
