/** Reads the API of the Go module from `go doc -all`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Failure } from '../../failure.mjs';

/** @returns {readonly import('./main.mjs').Entry[]} */
export function goEntries(root) {
  const { error, status, stdout, stderr } = spawnSync('go', ['doc', '-all', '.'], {
    cwd: join(root, 'sdk', 'go'),
    encoding: 'utf8',
  });
  if (error !== undefined || status !== 0) throw new Failure('go_failed', error?.message ?? stderr.trim());
  const [, ...sections] = stdout.split(/^(?:CONSTANTS|VARIABLES|FUNCTIONS|TYPES)$/m);
  const entries = [];
  for (const { declaration, text } of sections.flatMap(declarationsIn)) {
    const name = /^(?:type|const|var) (\w+)/.exec(declaration)?.[1];
    const [first, ...body] = declaration.split('\n');
    if (name !== undefined) {
      const isOpen = body.length > 0;
      entries.push({
        name,
        signature: isOpen ? first.replace(/ \{$/, '') : first,
        text,
        members: isOpen ? membersOf(body) : [],
      });
    } else if (body.length > 0) entries.at(-1).members.push(...membersOf(body));
    else entries.at(-1).members.push({ signature: first, text });
  }
  return entries;
}

/** A declaration starts in the first column and ends with its bracket; indented lines after it are its comment. */
function declarationsIn(section) {
  const starts = /^(?=(?:type|func|const|var) )/m;
  return section
    .split(starts)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const lines = part.trimEnd().split('\n');
      const end = /[{(]$/.test(lines[0]) ? lines.findIndex((line) => /^[})]/.test(line)) : 0;
      return { declaration: lines.slice(0, end + 1).join('\n'), text: lines.slice(end + 1).join('\n') };
    });
}

/** Fields of a struct, or constants of a group, each with the comment above it. */
function membersOf(lines) {
  const members = [];
  let comment = [];
  for (const line of lines.map((each) => each.trim()).filter((each) => /\w/.test(each))) {
    if (line.startsWith('//')) comment.push(line.slice(2));
    else {
      members.push({ signature: line.replace(/\s+/g, ' '), text: comment.join('\n') });
      comment = [];
    }
  }
  return members;
}
