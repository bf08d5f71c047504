/** Checks that comments of the code cite what exists: files, sections of documents, and names behind `@link`. */
import { describe, expect, it } from '@jest/globals';
import { COMMENTED_FILES, commentsIn, deadFiles, deadLinks, deadSections } from '../support/docs/comments.ts';
import { readText } from '../support/docs/markdown.ts';

describe('comments', () => {
  it('name files that exist', () => {
    const dead = COMMENTED_FILES.flatMap((file) =>
      deadFiles(file, commentsIn(file, readText(file))).map(({ line, text }) => `${file}:${line}: ${text}`),
    );
    expect(dead).toEqual([]);
  });

  it('cite sections that the documents have', () => {
    const dead = COMMENTED_FILES.flatMap((file) =>
      deadSections(file, commentsIn(file, readText(file))).map((section) => `${file}: ${section}`),
    );
    expect(dead).toEqual([]);
  });

  it('link to names that the file declares or imports', () => {
    const dead = COMMENTED_FILES.filter((file) => /\.(?:ts|tsx|mjs)$/.test(file)).flatMap((file) =>
      deadLinks(readText(file)).map((name) => `${file}: ${name}`),
    );
    expect(dead).toEqual([]);
  });
});

describe('a dead reference is found', () => {
  const FILE = 'src/protocol/reasons.ts';
  const [gone, lost] = ['gone', 'lost'];
  const dead = (file: string, source: string) =>
    deadFiles(file, commentsIn(file, source)).map(({ line, text }) => `${line}: ${text}`);

  it('to a path, in each language', () => {
    const [src, path] = ['src', `src/${gone}/away.ts`];
    expect(dead(FILE, `/** As ${path} says. */`)).toEqual([`1: ${path}`]);
    expect(dead(FILE, `const one = 1; // see ${path}`)).toEqual([`1: ${path}`]);
    expect(dead(FILE, `/**\n * A sentence.\n * As ${path} says.\n */`)).toEqual([`3: ${path}`]);
    expect(dead('sdk/python/setup.py', `x = 1\n"""As ${path}\nor docs/${lost}.md say.\n"""`)).toEqual([
      `2: ${path}`,
      `3: docs/${lost}.md`,
    ]);
    expect(dead('scripts/tool-cache.sh', `# As in ${src}/${lost}/`)).toEqual([`1: ${src}/${lost}/`]);
  });

  it('to a file name in backticks', () => {
    expect(dead(FILE, `// As \`${gone}.ts\` and \`reasons.ts\` say.`)).toEqual([`1: ${gone}.ts`]);
    expect(dead(FILE, `/** As \`../${gone}.md\` says. */`)).toEqual([`1: ../${gone}.md`]);
    expect(dead(FILE, `// As in ./${gone}.ts, and ../${gone}.ts.`)).toEqual([
      `1: ./${gone}.ts`,
      `1: ../${gone}.ts`,
    ]);
    expect(dead(FILE, `/** As \`${gone}/reasons.ts\` says. */`)).toEqual([`1: ${gone}/reasons.ts`]);
  });

  it('not outside of comments, and not when it exists', () => {
    expect(dead(FILE, `const path = 'src/${gone}/away.ts';`)).toEqual([]);
    expect(dead(FILE, '/** As `wire-names.ts`, `../protocol/reasons.ts` and src/verifier/ say. */')).toEqual(
      [],
    );
  });

  it('to a section, and to a name behind @link', () => {
    expect(deadSections(FILE, `docs/design/architecture.md "${gone}"`)).toEqual([
      `docs/design/architecture.md "${gone}"`,
    ]);
    expect(deadSections(FILE, `docs/${lost}.md "Style"`)).toEqual([`docs/${lost}.md "Style"`]);
    expect(deadSections(FILE, 'CONTRIBUTING.md "Test\nlanes" and "Style"')).toEqual([]);
    expect(deadLinks(`/** As {@link ${gone}}. */\nconst other = 1;`)).toEqual([gone]);
    expect(deadLinks(`/** As {@link ${gone}}. */\nconst ${gone} = 1;`)).toEqual([]);
  });
});
