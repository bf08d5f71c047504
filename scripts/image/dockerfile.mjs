/**
 * Parses the subset of Dockerfiles and .dockerignore files that ours use, and rejects everything else. Source: the Dockerfile
 * reference.
 */
import { Failure } from '../failure.mjs';

const KNOWN = new Set(['ARG', 'FROM', 'WORKDIR', 'COPY', 'RUN', 'LABEL', 'ENV', 'USER', 'ENTRYPOINT', 'CMD']);

/** @returns `args` before the first stage, and `stages`, each with `base`, `name`, `platform` and `steps` */
export function parseDockerfile(text) {
  const args = [];
  const stages = [];
  for (const step of stepsOf(text)) {
    if (step.instruction === 'FROM') stages.push(stageOf(step));
    else if (stages.length > 0) stages.at(-1).steps.push(step);
    else if (step.instruction === 'ARG') args.push(step.text);
    else throw new Failure('dockerfile_order', `${step.instruction} comes before the first FROM`);
  }
  return { args, stages };
}

function stepsOf(text) {
  const lines = text.split('\n').filter((line) => !/^\s*#/.test(line));
  const joined = lines.join('\n').replace(/\\\n\s*/g, ' ');
  return joined
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .map(stepOf);
}

function stepOf(line) {
  const [, instruction = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
  if (!KNOWN.has(instruction))
    throw new Failure('dockerfile_instruction', `not an instruction that is used here: ${line}`);
  const { flags, text } = flagsOf(rest);
  return { instruction, flags, text, exec: text.startsWith('[') ? JSON.parse(text) : undefined };
}

function flagsOf(rest) {
  const flags = {};
  let text = rest;
  for (let found = flagAtStart(text); found !== null; found = flagAtStart(text)) {
    flags[found[1]] = found[2];
    text = text.slice(found[0].length);
  }
  return { flags, text };
}

function flagAtStart(text) {
  return /^--([a-z]+)=(\S+)\s+/.exec(text);
}

function stageOf({ flags, text }) {
  const [, base, name] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(text) ?? [];
  if (base === undefined) throw new Failure('dockerfile_from', `not a stage: ${text}`);
  return { base, name, platform: flags.platform, steps: [] };
}

/** Source and destination of a COPY. */
export function copiedBy({ exec, text }) {
  const words = exec ?? text.split(/\s+/);
  return { sources: words.slice(0, -1), destination: words.at(-1) };
}

/**
 * @returns a function that tells whether a path of the context is excluded; the last pattern that matches it or one of
 * its folders decides
 */
export function parseDockerignore(text) {
  const patterns = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ isKept: line.startsWith('!'), matches: matcherOf(line.replace(/^!/, '')) }));
  return (path) => {
    const last = patterns.findLast(({ matches }) => matches(path));
    return last !== undefined && !last.isKept;
  };
}

function matcherOf(pattern) {
  const source = pattern
    .replace(/^\/|\/$/g, '')
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('**', '\0')
    .replaceAll('*', '[^/]*')
    .replaceAll('\0', '.*');
  const expression = new RegExp(`^${source}(?:/.*)?$`);
  return (path) => expression.test(path);
}
