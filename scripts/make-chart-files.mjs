/**
 * Generates the files of the chart helm/proofgate that have a source elsewhere: its README from the comments of values.yaml,
 * its alerts from docs/operate/alerts.yaml, its Envoy configuration from envoy/envoy.yaml, its version from package.json. With --check
 * it writes nothing and lists the outdated files.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { isMap, parseDocument } from 'yaml';

const CHART = 'helm/proofgate';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const files = {
  [`${CHART}/Chart.yaml`]: chartWithVersion(readFileSync(`${CHART}/Chart.yaml`, 'utf8')),
  [`${CHART}/files/envoy.yaml`]: readFileSync('envoy/envoy.yaml', 'utf8'),
  [`${CHART}/files/verifier-alerts.yaml`]: readFileSync('docs/operate/alerts.yaml', 'utf8'),
  [`${CHART}/README.md`]: `${readFileSync(`${CHART}/README.head.md`, 'utf8')}${describeValues()}`,
};

const stale = Object.entries(files).filter(([file, content]) => readIfThere(file) !== content);
if (process.argv.includes('--check')) {
  for (const [file] of stale) console.error(`${file} is not current: make chart`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const [file, content] of stale) writeFileSync(file, content);
}

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function chartWithVersion(chart) {
  return chart.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`);
}

/** A section for each top-level map, and one before them for the rest. */
function describeValues() {
  const { contents } = parseDocument(readFileSync(`${CHART}/values.yaml`, 'utf8'));
  const members = contents.items.map((pair, index) => memberOf(pair, index === 0 ? contents : undefined));
  const general = members.filter(({ children }) => children === undefined);
  const sections = members.filter(({ children }) => children !== undefined);
  return [
    table(general),
    ...sections.map(
      ({ key, comment, children }) => `### ${key}\n\n${comment}\n\n${table(leaves(children, `${key}.`))}`,
    ),
  ].join('\n');
}

/**
 * The parser gives a map's first comment to the map itself.
 * @param map whose first member it is
 */
function memberOf({ key, value }, map) {
  const comment = (key.commentBefore ?? map?.commentBefore)
    ?.split('\n')
    .at(map === undefined ? 0 : -1)
    ?.trim();
  if (comment === undefined) throw new Error(`${CHART}/values.yaml: ${key.value} has no comment`);
  return { key: key.value, comment, value, children: childrenOf(value) };
}

/** Undefined for a value that is shown as a whole: not a map, an empty map, or a map whose members have no comments. */
function childrenOf(value) {
  if (!isMap(value) || value.flow) return undefined;
  const [first] = value.items;
  if (first === undefined || (value.commentBefore ?? first.key.commentBefore) === undefined) return undefined;
  return value.items.map((pair, index) => memberOf(pair, index === 0 ? value : undefined));
}

function leaves(members, prefix) {
  return members.flatMap((member) => {
    const key = `${prefix}${member.key}`;
    const { children } = member;
    return children === undefined
      ? [{ ...member, key }]
      : [{ ...member, key }, ...leaves(children, `${key}.`)];
  });
}

/** The row of a map whose members have rows of their own describes the members and shows no value. */
function table(members) {
  const rows = members.map(({ key, value, comment, children }) => {
    const shown = children === undefined ? `\`${JSON.stringify(value.toJSON())}\`` : '';
    return `| \`${key}\` | ${shown} | ${comment.replaceAll('|', '\\|')} |`;
  });
  return `| value | default | says |\n|---|---|---|\n${rows.join('\n')}\n`;
}
