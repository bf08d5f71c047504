/**
 * Fuzzes each surface that accepts untrusted bytes, in one process each, two at a time: `make fuzz`.
 * PROOFGATE_FUZZ_RUNS is the number of executions of each, by default a million; PROOFGATE_FUZZ_SEED is the seed.
 * Arguments are targets, by default all.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const HOOKS = new URL('../test/fuzz/engine/instrumenting-hooks.mjs', import.meta.url).href;
const REGISTER = `data:text/javascript,import { register } from 'node:module'; register('${HOOKS}');`;
const MAIN = fileURLToPath(new URL('../test/fuzz/main.ts', import.meta.url));
const ALL = ['bundle', 'check-request', 'passport', 'dpop', 'transcript', 'path'];
const AT_A_TIME = 2;

const runs = process.env.PROOFGATE_FUZZ_RUNS ?? '1000000';
const seed = process.env.PROOFGATE_FUZZ_SEED ?? String(Date.now() % 2 ** 31);
const waiting = process.argv.length > 2 ? process.argv.slice(2) : ALL;
let failed = false;

/** @returns the last line of the process */
function fuzz(target) {
  const args = ['--enable-source-maps', '--import', REGISTER, MAIN, target, runs, seed];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (text) => {
    out += text;
  });
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, out }));
  });
}

async function work() {
  for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
    const { code, out } = await fuzz(target);
    failed ||= code !== 0;
    process.stdout.write(
      code === 0 || out !== '' ? describe(JSON.parse(out)) : `${target}: ended with ${code}\n`,
    );
  }
}

function describe({
  edges,
  edgesTaken,
  executions,
  features,
  finding,
  kept,
  maxSteps,
  perSecond,
  seconds,
  target,
}) {
  const figures =
    `${target}: ${executions} executions, ${edgesTaken} of ${edges} edges, ${features} features, ${kept} inputs kept, ` +
    `at most ${maxSteps} steps, ${Math.round(seconds)} s, ${Math.round(perSecond)}/s, seed ${seed}\n`;
  if (finding === undefined) return figures;
  return (
    `${figures}${target}: FOUND ${finding.error}\n${target}: the input is ${finding.file}; ` +
    `keep it under test/fuzz/findings/${target}/, and make a vector of it (test/vectors/README.md, "Findings of fuzzing")\n`
  );
}

await Promise.all(Array.from({ length: AT_A_TIME }, work));
process.exitCode = failed ? 1 : 0;
