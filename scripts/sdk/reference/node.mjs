/** Reads the API of `@proofgate/client`: what src/caller/sdk/index.ts exports, as the declarations that the package ships show it. */
import { dirname, join } from 'node:path';
import ts from 'typescript';

const ENTRY = ['src', 'caller', 'sdk', 'index.ts'];

/** @returns {readonly import('./main.mjs').Entry[]} */
export function nodeEntries(root) {
  const entry = join(root, ...ENTRY);
  const declarations = declarationsOf(root, entry);
  return exportsOf(declarations.get(entry)).map(({ name, module }) => {
    const source = declarations.get(join(dirname(entry), module));
    const found = source.statements.find((statement) => statement.name?.text === name);
    if (found === undefined) throw new Error(`${module} declares no ${name}`);
    return { name, ...describe(found, source) };
  });
}

/** The .d.ts of each source that the entry reaches, by the path of the source. */
function declarationsOf(root, entry) {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [entry] }, ts.sys, root);
  const program = ts.createProgram([entry], {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    incremental: false,
    tsBuildInfoFile: undefined,
  });
  const found = new Map();
  program.emit(undefined, (path, text, _mark, _onError, [source]) => {
    found.set(source.fileName, ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  });
  return found;
}

function exportsOf(index) {
  return index.statements.flatMap(({ exportClause, moduleSpecifier }) =>
    exportClause.elements.map(({ name }) => ({ name: name.text, module: moduleSpecifier.text })),
  );
}

function describe(node, source) {
  const printed = (part) => oneLine(part.getText(source));
  if (ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) {
    const heritage = (node.heritageClauses ?? []).map((clause) => ` ${printed(clause)}`).join('');
    const kind = ts.isClassDeclaration(node) ? 'class' : 'interface';
    const members = node.members
      .filter(isPublic)
      .map((member) => ({ signature: printed(member).replace(/^readonly /, ''), text: commentOf(member) }));
    return { signature: `${kind} ${node.name.text}${heritage}`, text: commentOf(node), members };
  }
  return {
    signature: printed(node).replace(/^export (?:declare )?/, ''),
    text: commentOf(node),
    members: [],
  };
}

/** Excludes constructors, because `Signer.open` creates a signer, and the SDK creates the errors. */
function isPublic(member) {
  return (
    member.name !== undefined &&
    !ts.isPrivateIdentifier(member.name) &&
    !ts.isComputedPropertyName(member.name)
  );
}

function oneLine(text) {
  return text.replace(/;$/, '').replace(/\s+/g, ' ');
}

function commentOf(node) {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).slice(-1);
  if (comment === undefined) return '';
  const tags = (comment.tags ?? []).map((tag) => {
    const text = ts.getTextOfJSDocComment(tag.comment) ?? '';
    return ts.isJSDocParameterTag(tag)
      ? `\`${tag.name.getText()}\`: ${text}.`
      : `${capitalized(tag.tagName.text)} ${thrown(tag)}${text}.`;
  });
  return [ts.getTextOfJSDocComment(comment.comment) ?? '', ...tags].join('\n\n');
}

/** The compiler does not separate the type in `@throws SignerError before …`. */
function thrown(tag) {
  return tag.typeExpression === undefined ? '' : `${tag.typeExpression.getText()} `;
}

function capitalized(word) {
  return word[0].toUpperCase() + word.slice(1);
}
