/** Finds the shared libraries of a system that programs and native modules need, directly and indirectly. */
import { Failure } from '../failure.mjs';
import { readElf } from './elf.mjs';

/**
 * @param files native code that will run
 * @param processor of `PROCESSORS` in contents.mjs
 * @param system a SystemRoot
 * @returns for each library its path in the image and its path on this machine
 */
export function librariesFor(files, processor, system) {
  const folder = `usr/lib/${processor.libraries}`;
  const found = new Map();
  const waiting = files.map((file) => ({ file, elf: elfFor(file, processor) }));
  while (waiting.length > 0) {
    const { elf } = waiting.shift();
    // The program loader is looked up by its whole path, libraries by their names.
    const wanted = elf.needed.map((name) => `${folder}/${name}`);
    const loader = elf.interpreter?.slice(1);
    for (const path of loader === undefined ? wanted : [...wanted, loader]) {
      const isLoader = /\/ld-linux[^/]*$/.test(path);
      if (found.has(path) || (isLoader && path !== loader)) continue;
      const file = system.find(path) ?? system.find(path.replace(/^usr\//, ''));
      if (file === undefined)
        throw new Failure('library_missing', `/${path} is not in the system that the image is made of`);
      found.set(path, file);
      waiting.push({ file, elf: elfFor(file, processor) });
    }
  }
  return found;
}

/** @throws Failure for native code of another processor */
function elfFor(file, { elfMachine }) {
  const elf = readElf(file);
  if (elf?.machine === elfMachine) return elf;
  throw new Failure('wrong_machine', `${file} is not native code for the image's processor`);
}
